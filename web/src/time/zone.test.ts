import { dayNumber } from './day';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

/** The module as it loads in a time zone. */
async function zoneIn(timeZone: string): Promise<typeof import('./zone')> {
  vi.resetModules();
  vi.stubEnv('TZ', timeZone);
  return import('./zone');
}

beforeEach(() => vi.unstubAllEnvs());
afterEach(() => vi.unstubAllEnvs());

describe('the days of a zone', () => {
  it('start at its midnight, also when the clocks change', async () => {
    const { dayAt, dayOf, dayStartMs, zoneLabel } = await zoneIn('Europe/Berlin');
    expect(dayOf('2026-03-01T22:59:59Z')).toBe('2026-03-01');
    expect(dayOf('2026-03-01T23:00:00Z')).toBe('2026-03-02');
    expect(new Date(dayStartMs(dayNumber('2026-03-29'))).toISOString()).toBe('2026-03-28T23:00:00.000Z');
    expect(new Date(dayStartMs(dayNumber('2026-03-30'))).toISOString()).toBe('2026-03-29T22:00:00.000Z');
    expect(dayAt(dayStartMs(dayNumber('2026-10-25')))).toBe('2026-10-25');
    expect(dayAt(dayStartMs(dayNumber('2026-10-25')) - 1)).toBe('2026-10-24');
    expect(zoneLabel(Date.UTC(2026, 0, 1))).toBe('Europe/Berlin (UTC+1)');
  });

  it('can be ahead by half an hour, or behind', async () => {
    const india = await zoneIn('Asia/Kolkata');
    expect(india.zoneLabel(0)).toMatch(/\(UTC\+5:30\)$/);
    const { dayOf, zoneLabel } = await zoneIn('America/Los_Angeles');
    expect(dayOf('2026-03-02T07:59:59Z')).toBe('2026-03-01');
    expect(zoneLabel(Date.UTC(2026, 0, 1))).toBe('America/Los Angeles (UTC−8)');
  });

  it('can be those of UTC', async () => {
    const { dayOf, zoneLabel, dayAt } = await zoneIn('UTC');
    expect([zoneLabel(0), dayOf('2026-03-01T23:59:59Z')]).toEqual(['UTC', '2026-03-01']);
    expect(dayAt(-1)).toBe('1969-12-31');
  });
});
