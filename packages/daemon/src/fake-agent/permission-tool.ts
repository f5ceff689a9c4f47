import { spawn } from 'node:child_process';
import { Rpc, RpcError } from './json-rpc.js';
import type { Options } from './script.js';

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
