import { systemClock } from '@millrace/kit/clock';
import { systemRandom } from '@millrace/kit/random';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import {
  CallToolRequestSchema,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { z } from 'zod';
import {
  describe,
  permissionServerName,
  permissionToolName,
  readAnswer,
  removeRequest,
  requestsDirectory,
  writeRequest,
  type PermissionAnswer,
} from './requests.js';

/*
 * The MCP server of one headless claude: its only tool is called when claude needs a permission. It
 * belongs to claude, not to the daemon, so a request stays open while the daemon is restarted.
 */
const directory = requestsDirectory(process.argv[2]!);
const pollMs = 50;
const open = new Set<string>();

const argumentsSchema = z.object({
  tool_name: z.string().min(1),
  input: z.record(z.string(), z.unknown()).default({}),
});

async function answerTo(id: string, signal: AbortSignal): Promise<PermissionAnswer> {
  for (;;) {
    const answer = readAnswer(directory, id);
    if (answer) return answer;
    await systemClock.sleep(pollMs);
    signal.throwIfAborted();
  }
}

/** The result in claude's format: a decision as JSON text. */
async function requestPermission(call: unknown, signal: AbortSignal): Promise<string> {
  const { tool_name: tool, input } = argumentsSchema.parse(call);
  const id = Buffer.from(systemRandom.bytes(16)).toString('hex');
  open.add(id);
  try {
    writeRequest(directory, { id, ...describe(tool, input) });
    const { isAllowed, message } = await answerTo(id, signal);
    return JSON.stringify(
      isAllowed ? { behavior: 'allow', updatedInput: input } : { behavior: 'deny', message },
    );
  } finally {
    removeRequest(directory, id);
    open.delete(id);
  }
}

const server = new Server(
  { name: permissionServerName, version: '1' },
  { capabilities: { tools: {} } },
);
server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: [
    {
      name: permissionToolName,
      description: 'Asks a person for a permission. Only for --permission-prompt-tool.',
      inputSchema: {
        type: 'object' as const,
        properties: {
          tool_name: { type: 'string' },
          input: { type: 'object' },
          tool_use_id: { type: 'string' },
        },
        required: ['tool_name', 'input'],
      },
    },
  ],
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
  if (params.name !== permissionToolName) {
    throw new McpError(ErrorCode.InvalidParams, `There is no tool "${params.name}"`);
  }
  return {
    content: [{ type: 'text' as const, text: await requestPermission(params.arguments, signal) }],
  };
});

/** Claude has ended and no longer waits for the answers. */
function leave(): void {
  for (const id of open) removeRequest(directory, id);
  process.exit();
}

process.stdin.once('end', leave);
process.stdin.once('close', leave);
await server.connect(new StdioServerTransport());
