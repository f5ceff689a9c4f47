import type { IncomingHttpHeaders } from 'node:http';
import { Refusal, UsageError } from '@millrace/kit/errors';
import type { Log } from '@millrace/kit/log';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type CallToolRequest,
  type CallToolResult,
  type JSONRPCRequest,
} from '@modelcontextprotocol/sdk/types.js';
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import { argumentChecks, bodyCheck, inputSchemaOf, outputSchemaOf } from './schemas.js';
import { tools, isReadOnly, requestOf, type Tool, type ToolRequest } from './tools.js';
import { fail } from '../core/api.js';

export interface McpParts {
  version: string;
  /** Throws `Refusal` when the caller may not use the tool; before its arguments are checked. */
  authorize?: (tool: Tool) => void;
  /** Runs the operation of a tool; throws `Refusal` for refusals. */
  call: (request: ToolRequest, tool: Tool) => Promise<object>;
  log: Log;
}

/** Created on first use, because compiling the contract's schemas is slow. */
let made: { listed: object[]; checks: ReturnType<typeof argumentChecks> } | undefined;

function shared() {
  return (made ??= { listed: tools.map(listed), checks: argumentChecks(tools) });
}

/** An MCP server with the daemon's tools, ready to connect to a transport. */
export function mcpServer({ version, authorize, call, log }: McpParts): Server {
  const server = new Server(
    { name: 'millrace', title: 'Millrace agent daemon', version },
    { capabilities: { tools: {} } },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: shared().listed as never }));
  // With a handler of its own, a faulty call would be an internal error.
  server.fallbackRequestHandler = async (message): Promise<CallToolResult> => {
    const params = callIn(message);
    const tool = tools.find(({ name }) => name === params.name);
    if (!tool) throw new McpError(ErrorCode.InvalidParams, `There is no tool "${params.name}"`);
    const args: unknown = params.arguments ?? {};
    try {
      authorize?.(tool);
      const check = shared().checks.get(tool.name)!;
      if (!check.accepts(args)) return errorResult(faultsText(check.faults(args)));
      const request = requestOf(tool, args as Record<string, string>);
      const { operation, body } = request;
      const faults =
        body && !bodyCheck(operation).accepts(body) && bodyCheck(operation).faults(body);
      if (faults) return errorResult(faultsText(faults));
      const result = await call(request, tool);
      return {
        content: [{ type: 'text', text: JSON.stringify(result) }],
        structuredContent: result as Record<string, unknown>,
      };
    } catch (error) {
      if (error instanceof Refusal) return errorResult(`${error.code}: ${error.detail}`);
      // `ctl mcp` cannot reach the daemon, and says what to do.
      if (error instanceof UsageError) return errorResult(error.message);
      log.error({ err: error, tool: tool.name }, 'mcp tool failed');
      return errorResult('INTERNAL: Internal error');
    }
  };
  return server;
}

function callIn(message: JSONRPCRequest): CallToolRequest['params'] {
  if (message.method !== 'tools/call') {
    throw new McpError(ErrorCode.MethodNotFound, `There is no method "${message.method}"`);
  }
  const call = CallToolRequestSchema.safeParse(message);
  if (call.success) return call.data.params;
  const needs = 'tools/call needs params: the name of a tool, and arguments as an object';
  throw new McpError(ErrorCode.InvalidParams, needs);
}

function listed(tool: Tool): object {
  const { name, title, description, annotations } = tool;
  return {
    name,
    title,
    description,
    annotations: { title, ...annotations },
    inputSchema: inputSchemaOf(tool),
    outputSchema: outputSchemaOf(tool),
  };
}

function faultsText(faults: readonly { pointer: string; message: string }[]): string {
  const each = faults.map(({ pointer, message }) => `${pointer || 'The arguments'} ${message}`);
  return `INVALID_REQUEST: ${each.join('; ')}`;
}

function errorResult(text: string): CallToolResult {
  return { isError: true, content: [{ type: 'text', text }] };
}

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
    const answer = await transport.handleRequest(httpRequestOf(headers), { parsedBody: message });
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

function httpRequestOf(headers: IncomingHttpHeaders): Request {
  const passed = new Headers();
  for (const name of passedOn) {
    const value = headers[name];
    if (typeof value === 'string') passed.set(name, value);
  }
  return new Request('http://localhost/mcp', { method: 'POST', headers: passed });
}
