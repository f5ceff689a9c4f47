import { spawn } from 'node:child_process';
import type { Options } from './script.js';
import type { Transcript } from './transcript.js';
import { runTurn, type TurnEnd } from './turn.js';
import { Rpc, RpcError } from './rpc.js';

export interface PrintParts {
  transcript: Transcript;
  cwd: string;
  options: Options;
  sessionId: string;
}

/** One headless run. Returns the exit code. */
export async function printRun({
  transcript,
  cwd,
  options,
  sessionId,
}: PrintParts): Promise<number> {
  const report = (event: object) => {
    if (options.isJson) line({ ...event, session_id: sessionId });
  };
  const prompt = options.prompt ?? (await stdinText());
  report({ type: 'system', subtype: 'init', cwd, model: options.model });
  const denials: object[] = [];
  const requestPermission = async (command: string) => {
    const input = { command };
    const decision = await callPermissionTool(options, input);
    if (decision.behavior === 'allow') return true;
    const denial = { tool_name: 'Bash', tool_use_id: 'toolu_fake', tool_input: input };
    if (options.permissionTool !== undefined) denials.push(denial);
    return false;
  };
  const end = await runTurn(
    {
      transcript,
      cwd,
      signal: new AbortController().signal,
      ui: {
        say: (text) => {
          if (!options.isJson) process.stdout.write(`${text}\n`);
        },
        message: (message) => report({ type: 'assistant', message, parent_tool_use_id: null }),
        requestPermission: (_, command) => requestPermission(command),
      },
    },
    prompt,
  );
  return finish(end, report, { isJson: options.isJson, denials });
}

function finish(
  end: TurnEnd,
  report: (event: object) => void,
  { isJson, denials }: { isJson: boolean; denials: readonly object[] },
): number {
  switch (end.kind) {
    case 'answered':
      report({
        type: 'result',
        subtype: 'success',
        is_error: false,
        result: end.text,
        permission_denials: denials,
      });
      return 0;
    case 'limited': {
      const resetsAt = Math.round((Date.now() + end.resetsInMs) / 1000);
      const info = { status: 'rejected', rateLimitType: 'five_hour', resetsAt };
      report({ type: 'rate_limit_event', rate_limit_info: info });
      report({ type: 'result', subtype: 'success', is_error: true, result: end.text });
      if (!isJson) process.stdout.write(`${end.text}\n`);
      return 1;
    }
    case 'failed':
      report({ type: 'result', subtype: 'success', is_error: true, result: end.text });
      if (!isJson) process.stdout.write(`${end.text}\n`);
      return 1;
    case 'crashed':
      process.stderr.write(`The fake agent crashes as scripted, with code ${end.code}\n`);
      return end.code;
    case 'interrupted':
      return 130;
  }
}

function line(event: object): void {
  process.stdout.write(`${JSON.stringify(event)}\n`);
}

async function stdinText(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

interface ServerConfig {
  command: string;
  args?: string[];
}

export type Decision = { behavior: 'allow'; updatedInput: object } | Denial;

interface Denial {
  behavior: 'deny';
  message: string;
}

/** Calls the MCP tool of `--permission-prompt-tool`, as claude does, and returns its decision. */
export async function callPermissionTool(
  { mcpConfig, permissionTool }: Options,
  input: object,
): Promise<Decision> {
  const [, serverName = '', tool = ''] = /^mcp__(.+)__(.+)$/.exec(permissionTool ?? '') ?? [];
  const { mcpServers } = JSON.parse(mcpConfig ?? '{"mcpServers":{}}') as {
    mcpServers: Record<string, ServerConfig>;
  };
  const server = mcpServers[serverName];
  // There is no permission tool that could allow it.
  if (!server) return { behavior: 'deny', message: 'Nobody can be asked.' };
  const child = spawn(server.command, server.args ?? [], { stdio: ['pipe', 'pipe', 'inherit'] });
  const unknown = new RpcError(-32_601, 'Method not found');
  const rpc = new Rpc(() => Promise.reject(unknown), { input: child.stdout, output: child.stdin });
  void rpc.serve();
  try {
    await rpc.request('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'fake-agent', version: '1.0' },
    });
    rpc.notify('notifications/initialized', {});
    const call = { tool_name: 'Bash', input, tool_use_id: 'toolu_fake' };
    const { content } = await rpc.request('tools/call', { name: tool, arguments: call });
    const [{ text } = { text: '' }] = content as { text: string }[];
    return JSON.parse(text) as Decision;
  } finally {
    child.stdin.end();
  }
}
