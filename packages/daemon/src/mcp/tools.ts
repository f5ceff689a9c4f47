import type { ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import type { ServedOperations } from '../core/served-operations.js';

/** What a tool asks of the daemon: an operation of the contract and what it is called with. */
export interface ToolRequest {
  operation: keyof ServedOperations;
  params?: Readonly<Record<string, string>>;
  query?: Readonly<Record<string, string>>;
  body?: object;
}

/** A schema of the contract, by its name there. */
export interface ContractSchema {
  contract: string;
}

/** One argument: a schema of the contract, or one of its own that the contract has no name for. */
export type ToolArgument = (ContractSchema | { schema: Readonly<Record<string, unknown>> }) & {
  description: string;
  /** It may be left out. */
  isOptional?: true;
};

export interface Tool {
  name: string;
  title: string;
  description: string;
  annotations: ToolAnnotations;
  /** The arguments. */
  input: Readonly<Record<string, ToolArgument>>;
  /** Whose schema the structured content has. */
  output: ContractSchema;
  request: (args: Readonly<Record<string, string>>) => ToolRequest;
}

const reads: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
// Nothing is lost by them, and saying the same thing twice says nothing new.
const changes: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

const sessionId = {
  schema: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' },
  description: "The agent's session id.",
};
const backendId = { contract: 'BackendName', description: "The backend's id, as listed." };

/** Every tool, in the order of the contract. To add one, add a line here: both faces follow. */
export const tools: readonly Tool[] = [
  {
    name: 'list_backends',
    title: 'List backends',
    description:
      'Lists the coding-agent backends of this machine: which are installed, how they are billed, ' +
      'which one is the default, and which are rate-limited. Includes the thinking mode.',
    annotations: reads,
    input: {},
    output: { contract: 'Registry' },
    request: () => ({ operation: 'listBackends' }),
  },
  {
    name: 'rescan_backends',
    title: 'Rescan backends',
    description:
      'Looks again which backends are installed and whether a local model answers. Keeps tiers, ' +
      'the default and what is enabled.',
    annotations: changes,
    input: {},
    output: { contract: 'Registry' },
    request: () => ({ operation: 'rescanBackends' }),
  },
  {
    name: 'set_backend_tier',
    title: 'Set the tier of a backend',
    description:
      'Says how a backend is billed. Only free backends are ever called by the daemon itself.',
    annotations: changes,
    input: { id: backendId, tier: { contract: 'AssignableTier', description: 'The new tier.' } },
    output: { contract: 'BackendRow' },
    request: ({ id, tier }) => ({
      operation: 'updateBackend',
      params: { id: id! },
      body: { tier },
    }),
  },
  {
    name: 'set_default_backend',
    title: 'Set the default backend',
    description: 'Makes one backend the default. It must be installed, enabled and not local.',
    annotations: changes,
    input: { id: backendId },
    output: { contract: 'Registry' },
    request: ({ id }) => ({ operation: 'setDefaultBackend', body: { id } }),
  },
  {
    name: 'set_thinking_mode',
    title: 'Set the thinking mode',
    description:
      'Decides which backends the daemon may use for its own thinking: the local model alone, or ' +
      'free backends first. Paid ones never.',
    annotations: changes,
    input: { mode: { contract: 'ThinkingMode', description: 'The new mode.' } },
    output: { contract: 'Settings' },
    request: ({ mode }) => ({ operation: 'setThinkingMode', body: { mode } }),
  },
  {
    name: 'set_force_compact',
    title: 'Override forced compaction for one agent',
    description:
      'Decides whether an agent may be interrupted in the middle of a turn when its context is ' +
      'critical: `on`, `off`, or `inherit` to follow the setting. The turn is then lost.',
    annotations: changes,
    input: {
      id: sessionId,
      state: { contract: 'ForceCompactChoice', description: 'The new override.' },
    },
    output: { contract: 'ForceCompactState' },
    request: ({ id, state }) => ({
      operation: 'setForceCompact',
      params: { id: id! },
      body: { state },
    }),
  },
  {
    name: 'get_branch_status',
    title: 'Tell how the branches stand',
    description:
      'Tells for each agent that works on a branch what CI says of it, how far it is ahead of its ' +
      'base and behind it, and whether it is merged.',
    annotations: reads,
    input: {},
    output: { contract: 'BranchStandings' },
    request: () => ({ operation: 'listBranches' }),
  },
  {
    name: 'savings',
    title: 'Report token savings',
    description:
      'Tells how many tokens were kept out of models, as a percentage and in dollars, and what ' +
      'the local model did in place of a cloud model. The two are never added up.',
    annotations: reads,
    input: {
      since: {
        contract: 'Since',
        description: 'Count from here on: 24h, 7d, 2w or an RFC 3339 time. All time if left out.',
        isOptional: true,
      },
      bucket: {
        schema: { type: 'string' },
        description: '`day` or `hour` attaches a trend.',
        isOptional: true,
      },
      samples: {
        schema: { enum: [true, false, 0, 1, '0', '1', 'true', 'false'] },
        description: 'Attach the retained pairs of raw and kept text.',
        isOptional: true,
      },
    },
    output: { contract: 'SavingsReport' },
    request: (args) => ({
      operation: 'getSavings',
      query: Object.fromEntries(
        // Models say true where a query says 1.
        Object.entries<unknown>(args).map(([name, value]) => [name, String(value)]),
      ),
    }),
  },
  {
    name: 'spend',
    title: 'Report spend',
    description:
      "Reports dollars and tokens measured from the agents' own transcripts: in all, today, this " +
      'week, and by agent, repository, day, model and backend.',
    annotations: reads,
    input: {},
    output: { contract: 'SpendRollup' },
    request: () => ({ operation: 'getSpend' }),
  },
];

export function isReadOnly({ annotations }: Tool): boolean {
  return annotations.readOnlyHint === true;
}
