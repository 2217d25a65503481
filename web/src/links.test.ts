import { expect, it, vi } from 'vitest';
import { reportLink } from './links';

vi.stubGlobal('location', { origin: 'https://scan.example.org' });

it.each([
  ['https://example.org/a?b=c#d', { href: 'https://example.org/a?b=c#d', isInternal: false }],
  ['HTTP://example.org', { href: 'http://example.org/', isInternal: false }],
  ['https://scan.example.org/batches/1', { href: 'https://scan.example.org/batches/1', isInternal: true }],
  ['https://scan.example.org/docs', { href: 'https://scan.example.org/docs', isInternal: false }],
])('accepts %s', (link, expected) => expect(reportLink(link)).toEqual(expected));

it.each(['javascript:alert(1)', 'data:text/html,x', '//example.org', '/r/1', 'https:///', null])('rejects %j', (link) =>
  expect(reportLink(link)).toBeNull(),
);
