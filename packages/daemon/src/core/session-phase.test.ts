import { expect, test } from 'vitest';
import { phaseOf } from './session.js';

test('phase: an idle agent is done, unless an error ended its turn', () => {
  expect(phaseOf({ status: 'idle', exit_code: null })).toBe('done');
  expect(phaseOf({ status: 'idle', exit_code: null, turn_error: null })).toBe('done');
  expect(phaseOf({ status: 'idle', exit_code: null, turn_error: 'API Error: 500' })).toBe('failed');
  expect(phaseOf({ status: 'working', exit_code: null, turn_error: 'old' })).toBe('works');
});
