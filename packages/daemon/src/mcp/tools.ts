import type { ToolAnnotations } from '@modelcontextprotocol/sdk/types.js';
import type { ServedOperations } from '../core/api.js';

/** The API call of a tool: an operation of the contract and its parameters. */
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

/** One argument: a named schema of the contract, or an inline one. */
export type ToolArgument = (ContractSchema | { schema: Readonly<Record<string, unknown>> }) & {
  description: string;
  /** Optional argument. */
  isOptional?: true;
};

export interface Tool {
  name: string;
  title: string;
  description: string;
  annotations: ToolAnnotations;
  /** The arguments. */
  input: Readonly<Record<string, ToolArgument>>;
  /** Schema of the structured content. */
  output: ContractSchema;
  request: (args: Readonly<Record<string, string>>) => ToolRequest;
}

const reads: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
// Not destructive, and idempotent.
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

/** All tools, in the order of the contract, for both transports. */
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
      'Detects again which backends are installed and whether a local model responds. Tiers, the ' +
      'default and enabled flags do not change.',
    annotations: changes,
    input: {},
    output: { contract: 'Registry' },
    request: () => ({ operation: 'rescanBackends' }),
  },
  {
    name: 'set_backend_tier',
    title: 'Set the tier of a backend',
    description: 'Sets how a backend is billed. The daemon itself calls only free backends.',
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
      'Sets which backends the daemon may use for its own prompts: only the local model, or free ' +
      'backends first. Paid backends are never used.',
    annotations: changes,
    input: { mode: { contract: 'ThinkingMode', description: 'The new mode.' } },
    output: { contract: 'Settings' },
    request: ({ mode }) => ({ operation: 'setThinkingMode', body: { mode } }),
  },
  {
    name: 'set_force_compact',
    title: 'Override forced compaction for one agent',
    description:
      'Sets whether an agent may be interrupted during a turn when its context is critical: ' +
      '`on`, `off`, or `inherit` to follow the setting. An interrupted turn is lost.',
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
    title: 'List branch status',
    description:
      "Lists for each agent's branch its CI state, how many commits it is ahead of and behind its " +
      'base, and whether it is merged.',
    annotations: reads,
    input: {},
    output: { contract: 'BranchStandings' },
    request: () => ({ operation: 'listBranches' }),
  },
  {
    name: 'savings',
    title: 'Report token savings',
    description:
      'Reports how many tokens were saved, as a percentage and in dollars, and what the local ' +
      'model did in place of a cloud model. The two are never added up.',
    annotations: reads,
    input: {
      since: {
        contract: 'Since',
        description: 'Start of the report: 24h, 7d, 2w or an RFC 3339 time. Default: all time.',
        isOptional: true,
      },
      bucket: {
        schema: { type: 'string' },
        description: 'Include a trend by `day` or `hour`.',
        isOptional: true,
      },
      samples: {
        schema: { enum: [true, false, 0, 1, '0', '1', 'true', 'false'] },
        description: 'Include the stored samples of raw and shortened text.',
        isOptional: true,
      },
    },
    output: { contract: 'SavingsReport' },
    request: (args) => ({
      operation: 'getSavings',
      query: Object.fromEntries(
        // Tools pass true where the query parameter is 1.
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
  {
    name: 'answer_question',
    title: 'Answer a question of an agent',
    description:
      'Answers a permission request or a choice of an agent: with the id of one of its options, ' +
      'or with text for a question of kind `text`. Of two answers the first one counts.',
    annotations: { ...changes, idempotentHint: false },
    input: {
      id: {
        ...sessionId,
        description: "The question's id, as in the alert or in the list of questions.",
      },
      option_id: {
        schema: { type: 'string', minLength: 1, maxLength: 256 },
        description: 'The id of the chosen option.',
        isOptional: true,
      },
      text: {
        schema: { type: 'string', minLength: 1, maxLength: 100_000 },
        description: 'The answer in words, for a question of kind `text`.',
        isOptional: true,
      },
    },
    output: { contract: 'Question' },
    request: ({ id, ...answer }) => ({
      operation: 'answerQuestion',
      params: { id: id! },
      body: answer,
    }),
  },
];

export function isReadOnly({ annotations }: Tool): boolean {
  return annotations.readOnlyHint === true;
}
