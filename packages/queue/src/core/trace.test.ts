import { expect, test } from 'vitest';
import { traceOf } from './callback-headers.js';

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const span = '00f067aa0ba902b7';
const form = /^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

test('without one from the submitter, an attempt begins a trace of its own', () => {
  const one = traceOf({}, 'token 1');
  expect(one.traceparent).toMatch(form);
  expect(one.traceparent).toContain(one.traceId);
  expect(one.isContinued).toBe(false);
  expect(traceOf({}, 'token 2').traceId).not.toBe(one.traceId);
});

test('whoever settles the attempt later comes to the same trace', () => {
  expect(traceOf({}, 'token 1')).toEqual(traceOf({}, 'token 1'));
});

test('the submitter’s trace goes on under a span of this attempt', () => {
  const headers = { Traceparent: `00-${trace}-${span}-00` };
  const one = traceOf(headers, 'token 1');
  expect(one).toMatchObject({ traceId: trace, isContinued: true });
  expect(one.traceparent).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-00$`));
  expect(one.traceparent).not.toContain(span);
  expect(traceOf(headers, 'token 2').traceparent).not.toBe(one.traceparent);
});

test('a later version is read as far as it is known', () => {
  const one = traceOf({ traceparent: `cc-${trace}-${span}-ff-what.the.future.brings` }, 't');
  expect(one.traceparent).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
  expect(traceOf({ traceparent: `cc-${trace}-${span}-08` }, 't').traceparent).toMatch(/-00$/);
});

test.each([
  '',
  'nonsense',
  `00-${trace}-${span}`,
  `00-${trace}-${span}-01-more`,
  `ff-${trace}-${span}-01`,
  `00-${'0'.repeat(32)}-${span}-01`,
  `00-${trace}-${'0'.repeat(16)}-01`,
  `00-${trace.toUpperCase()}-${span}-01`,
  `00-${trace.slice(1)}-${span}-01`,
  `0-${trace}-${span}-01`,
])('"%s" is not a valid traceparent', (traceparent) => {
  const one = traceOf({ traceparent }, 'token');
  expect(one).toEqual(traceOf({}, 'token'));
});
