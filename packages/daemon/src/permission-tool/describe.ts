import { changedLines } from '../acp-host/host-events.js';
import { maxBodyLength } from '../questions/question.js';
import type { PermissionRequest } from './requests.js';

type Input = Readonly<Record<string, unknown>>;

const maxTitleLength = 200;

/** How a tool call of claude is shown. */
export function describe(tool: string, input: Input): Omit<PermissionRequest, 'id'> {
  const name = tool.slice(0, maxTitleLength);
  const about = textIn(input, 'description')?.split('\n')[0]?.slice(0, maxTitleLength);
  const title = about ? `${name}: ${about}` : name;
  return { tool: name, title, body: bodyOf(input).slice(0, maxBodyLength) };
}

/** The command, the file with its changed lines, the address, or the whole input. */
function bodyOf(input: Input): string {
  const command = textIn(input, 'command');
  if (command !== undefined) return command;
  const file = textIn(input, 'file_path') ?? textIn(input, 'notebook_path');
  if (file !== undefined) {
    const fresh = textIn(input, 'new_string') ?? textIn(input, 'content') ?? '';
    return [file, ...changedLines(textIn(input, 'old_string') ?? '', fresh)].join('\n');
  }
  return textIn(input, 'url') ?? JSON.stringify(input, null, 2);
}

function textIn(input: Input, name: string): string | undefined {
  const value = input[name];
  return typeof value === 'string' ? value : undefined;
}
