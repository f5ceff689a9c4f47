import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import type { IncomingHttpHeaders } from 'node:http';
import { fail } from '../core/refusals.js';
import { mcpServer, type McpParts } from './server.js';
import { isReadOnly } from './tools.js';

export interface McpCall extends McpParts {
  access: 'full' | 'read_only';
}

export interface McpAnswer {
  status: number;
  /** JSON-RPC; undefined for an empty response. */
  body: object | undefined;
}

const passedOn = ['accept', 'content-type', 'mcp-protocol-version', 'mcp-session-id'];

/**
 * Handles one POST of the streamable HTTP transport. The server is stateless: each message gets its
 * own server, which is cheap, and no client can see or cancel another's requests.
 */
export async function answerMcp(
  { access, ...parts }: McpCall,
  headers: IncomingHttpHeaders,
  message: unknown,
): Promise<McpAnswer> {
  const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  const server = mcpServer({
    ...parts,
    authorize: (tool) => {
      if (access === 'full' || isReadOnly(tool)) return;
      throw fail('FORBIDDEN', `The read-only token cannot use ${tool.name}. Use the full token.`);
    },
  });
  await server.connect(transport);
  try {
    const answer = await transport.handleRequest(requestOf(headers), { parsedBody: message });
    if (answer.status === 406) {
      throw fail(
        'NOT_ACCEPTABLE',
        'Send Accept: application/json, text/event-stream. The protocol requires both.',
      );
    }
    const text = await answer.text();
    return {
      status: answer.status,
      body: text === '' ? undefined : (JSON.parse(text) as object),
    };
  } finally {
    await server.close();
  }
}

function requestOf(headers: IncomingHttpHeaders): Request {
  const passed = new Headers();
  for (const name of passedOn) {
    const value = headers[name];
    if (typeof value === 'string') passed.set(name, value);
  }
  return new Request('http://localhost/mcp', { method: 'POST', headers: passed });
}
