import { expect, test } from 'vitest';
import { sharedErrors } from './problems.js';

test('sharedErrors: an error of several branches is said once', () => {
  const branches = [
    { agent_id: 'a', error: 'gh is not installed' },
    { agent_id: 'b', error: 'gh is not installed' },
    { agent_id: 'c', error: 'no such remote' },
    { agent_id: 'd', error: null },
  ];
  expect(sharedErrors(branches)).toEqual([{ error: 'gh is not installed', count: 2 }]);
});
