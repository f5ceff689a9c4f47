import { describe, expect, test } from 'vitest';
import { decide } from '../questions/question.js';
import { ToolCalls } from './host-events.js';

const command = 'touch /elsewhere/x.txt';
/** Lines of opencode 1.18.18, with shorter paths. */
const call = {
  toolCallId: 'call_00000004',
  title: 'bash',
  kind: 'execute' as const,
  status: 'pending' as const,
  locations: [{ path: '/workspace' }],
  rawInput: { cwd: '/workspace' },
};
const folderRequest = {
  toolCallId: 'call_00000004',
  title: command,
  kind: 'other' as const,
  status: 'pending' as const,
  locations: [{ path: '/elsewhere' }],
  rawInput: { command, directories: ['/elsewhere'], patterns: ['/elsewhere/*'] },
};
const options = [
  { id: 'once', label: 'Allow once', kind: 'allow_once' as const },
  { id: 'reject', label: 'Reject', kind: 'reject' as const },
];

describe('permission details', () => {
  test('a request of kind other has the kind of its tool call', () => {
    const calls = new ToolCalls();
    calls.take(call);
    const details = calls.permissionDetails(folderRequest);
    expect(details).toEqual({ title: command, tool: 'execute', body: command });
    const question = { kind: 'permission' as const, options, ...details };
    const rules = [{ tool: 'execute(touch *)', action: 'deny' as const }];
    expect(decide(rules, 'opencode', question)).toEqual({ optionId: 'reject', action: 'deny' });
  });

  test('a request about an unknown call of kind other has no tool', () => {
    expect(new ToolCalls().permissionDetails(folderRequest).tool).toBeNull();
  });
});
