import { expect, it } from 'vitest';
import { reportLink } from './links';

it.each([
  ['https://example.org/a?b=c#d', 'https://example.org/a?b=c#d'],
  ['HTTP://example.org', 'http://example.org/'],
])('accepts %s', (link, expected) => expect(reportLink(link)).toBe(expected));

it.each([
  'javascript:alert(1)',
  'data:text/html,x',
  '//example.org',
  '/r/1',
  'https:///',
  'https:evil',
  'https:\\\\evil',
  null,
])('rejects %j', (link) => expect(reportLink(link)).toBeNull());
