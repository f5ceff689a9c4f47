import { daemonOperations } from '@millrace/contract/daemon';
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
  input: Readonly<Record<string, ToolArgument>>;
  /** Schema of the structured content. */
  output: ContractSchema;
  /** The operation that gets the arguments, or what to make of them. */
  operation?: keyof ServedOperations;
  /** Of arguments that are not given. */
  defaults?: Readonly<Record<string, unknown>>;
  request?: (args: Readonly<Record<string, string>>) => ToolRequest;
}

/** The call of a tool: arguments named in the path of its operation go there, the others beside. */
export function requestOf(tool: Tool, args: Readonly<Record<string, string>>): ToolRequest {
  const { operation, defaults, input } = tool;
  if (!operation) return tool.request!(args);
  const { method, path } = daemonOperations[operation];
  const rest: Record<string, unknown> = { ...defaults, ...args };
  const params = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => {
    const given = name === 'id' && 'plan_id' in input ? 'plan_id' : name!;
    const value = String(rest[given]);
    delete rest[given];
    return [name!, value] as const;
  });
  const hasMore = Object.keys(input).length > params.length;
  // The query has text: true where a tool passes 1.
  const query = Object.entries(rest).map(([name, value]) => [name, String(value)]);
  return {
    operation,
    params: Object.fromEntries(params),
    ...(hasMore && (method === 'GET' ? { query: Object.fromEntries(query) } : { body: rest })),
  };
}

const reads: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
// Not destructive, and idempotent.
const changes: ToolAnnotations = {
  readOnlyHint: false,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
};

// Each call does something again.
const starts: ToolAnnotations = { ...changes, idempotentHint: false };

const sessionId = {
  schema: { type: 'string', pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$' },
  description: "The agent's session id.",
};
const backendId = { contract: 'BackendName', description: "The backend's id, as listed." };

const agentId = {
  schema: { type: 'string', minLength: 1, maxLength: 128 },
  description: "The agent's session id, or its name.",
};
const isOptional = true;
/** By default, clients give up a call after a minute. */
const defaultWaitMs = 45_000;
const waitTime = {
  schema: { type: 'integer', minimum: 0, maximum: 600_000 },
  description: 'How long to wait, at most ten minutes; default: 45 seconds.',
  isOptional,
} as const;

function text(maxLength: number) {
  return { type: 'string', minLength: 1, maxLength };
}

const planId = { ...sessionId, description: "The plan's id." };
const taskKey = { contract: 'JobId', description: 'The key of the task in its plan.' };

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
    operation: 'listBackends',
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
    operation: 'rescanBackends',
  },
  {
    name: 'set_backend_tier',
    title: 'Set the tier of a backend',
    description: 'Sets how a backend is billed. The daemon itself calls only free backends.',
    annotations: changes,
    input: { id: backendId, tier: { contract: 'AssignableTier', description: 'The new tier.' } },
    output: { contract: 'BackendRow' },
    operation: 'updateBackend',
  },
  {
    name: 'set_default_backend',
    title: 'Set the default backend',
    description: 'Makes one backend the default. It must be installed, enabled and not local.',
    annotations: changes,
    input: { id: backendId },
    output: { contract: 'Registry' },
    operation: 'setDefaultBackend',
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
    operation: 'setThinkingMode',
  },
  {
    name: 'set_force_compact',
    title: 'Override forced compaction for one agent',
    description:
      'Sets whether an agent may be interrupted during a turn when its context is critical: ' +
      '`on`, `off`, or `inherit` to follow the setting. An interrupted turn is lost.',
    annotations: changes,
    input: {
      id: agentId,
      state: { contract: 'ForceCompactChoice', description: 'The new override.' },
    },
    output: { contract: 'ForceCompactState' },
    operation: 'setForceCompact',
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
    operation: 'listBranches',
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
    operation: 'getSavings',
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
    operation: 'getSpend',
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
    operation: 'answerQuestion',
  },
  {
    name: 'spawn_agent',
    title: 'Start an agent',
    description:
      'Starts a coding agent on a prompt and returns its session at once; wait_for_agent waits for ' +
      'it. With a branch it works in a worktree of its own. An agent that calls this becomes the ' +
      'parent: depth, number and budget of its agents are limited.',
    annotations: starts,
    input: {
      prompt: { contract: 'Prompt', description: 'What the agent is to do.' },
      backend: { ...backendId, description: 'The backend; default: the default one.', isOptional },
      name: { schema: text(128), description: 'A name to find it by.', isOptional },
      model: { schema: text(128), description: 'The model to ask the backend for.', isOptional },
      repo: { schema: text(4096), description: 'Path of the repository to work in.', isOptional },
      branch: { contract: 'BranchName', description: 'A branch, made if it is new.', isOptional },
      driver: { contract: 'Driver', description: 'How it is run.', isOptional },
      budget_usd: {
        schema: { type: 'number', exclusiveMinimum: 0 },
        description: 'Most dollars for it and the agents that it starts.',
        isOptional,
      },
    },
    output: { contract: 'Session' },
    operation: 'spawnSession',
  },
  {
    name: 'list_agents',
    title: 'List agents',
    description: 'Lists the sessions of agents with their status. An agent sees those it started.',
    annotations: reads,
    input: {},
    output: { contract: 'SessionList' },
    operation: 'listSessions',
  },
  {
    name: 'read_agent',
    title: 'Read what an agent has done',
    description: 'Shows the status of an agent, its last answer, and the size of its changes.',
    annotations: reads,
    input: { id: agentId },
    output: { contract: 'SessionSummary' },
    operation: 'getSessionSummary',
  },
  {
    name: 'send_to_agent',
    title: 'Send text to an agent',
    description: 'Gives an idle agent its next prompt, or an interactive one some text.',
    annotations: starts,
    input: {
      id: agentId,
      text: { schema: text(1_000_000), description: 'The text to send.' },
    },
    output: { contract: 'Session' },
    operation: 'sendToSession',
  },
  {
    name: 'wait_for_agent',
    title: 'Wait for an agent',
    description:
      'Returns when the agent does not work any more: idle, waiting for an answer, limited or ' +
      'ended. After the time it returns with timed_out: call it again.',
    annotations: reads,
    input: { id: agentId, timeout_ms: waitTime },
    output: { contract: 'SessionWait' },
    operation: 'waitForSession',
    defaults: { timeout_ms: defaultWaitMs },
  },
  {
    name: 'stop_agent',
    title: 'Stop an agent',
    description: 'Ends the process of an agent. Its session, branch and worktree stay.',
    annotations: { ...changes, destructiveHint: true },
    input: { id: agentId },
    output: { contract: 'Session' },
    operation: 'stopSession',
  },
  {
    name: 'ask_person',
    title: 'Ask a person',
    description:
      'Asks the person who watches the agents, and waits for the answer. Without an answer in time ' +
      'the status is open: call it again with the id to go on waiting.',
    annotations: starts,
    input: {
      title: { schema: text(500), description: 'The question in one line.', isOptional },
      body: { schema: text(4_000), description: 'What it is about.', isOptional },
      options: {
        schema: { type: 'array', maxItems: 10, items: text(200) },
        description: 'The possible answers; none: any text.',
        isOptional,
      },
      id: { ...sessionId, description: 'A question asked before, to wait again.', isOptional },
      session_id: {
        ...agentId,
        description: 'The agent to ask for; needed unless an agent of the daemon asks itself.',
        isOptional,
      },
      timeout_ms: waitTime,
    },
    output: { contract: 'Question' },
    request: ({ id, timeout_ms, ...question }) =>
      id === undefined
        ? {
            operation: 'createQuestion',
            body: { ...question, wait_ms: timeout_ms ?? defaultWaitMs },
          }
        : {
            operation: 'waitForQuestion',
            params: { id },
            body: { timeout_ms: timeout_ms ?? defaultWaitMs },
          },
  },
  {
    name: 'create_plan',
    title: 'Create a plan of agents',
    description:
      'Creates tasks that agents do, with dependencies, and starts those that wait for nothing. A ' +
      'task gets the results and branches of those before it in its prompt. Tasks can race ' +
      'backends, be reviewed by another agent and be merged after a yes of a person.',
    annotations: starts,
    input: {
      title: { schema: text(128), description: 'What the plan is about.' },
      repo: { schema: text(4096), description: 'Path of the repository to work in.', isOptional },
      base: { contract: 'BranchName', description: 'Branch to start from.', isOptional },
      tasks: {
        contract: 'PlanTasks',
        description: 'The tasks, each with a key that others name in depends_on.',
      },
    },
    output: { contract: 'Plan' },
    operation: 'createPlan',
  },
  {
    name: 'submit_task',
    title: 'Submit a task',
    description:
      'Creates a plan of one task, which an agent does at once. With assignee `person` it is left ' +
      'to people, and to agents that claim it.',
    annotations: starts,
    input: {
      title: { schema: text(128), description: 'What it is about, in one line.', isOptional },
      prompt: { contract: 'Prompt', description: 'What to do.' },
      assignee: {
        schema: { type: 'string', enum: ['agent', 'person'] },
        description: 'Who does it; default: an agent.',
        isOptional,
      },
      backend: { ...backendId, description: 'The backend; default: any free one.', isOptional },
      repo: { schema: text(4096), description: 'Path of the repository to work in.', isOptional },
      base: { contract: 'BranchName', description: 'Branch to start from.', isOptional },
    },
    output: { contract: 'Plan' },
    request: ({ title: given, repo, base, ...task }) => {
      const title = given ?? firstLine(task['prompt']!);
      return {
        operation: 'createPlan',
        body: {
          title,
          ...(repo !== undefined && { repo }),
          ...(base !== undefined && { base }),
          tasks: [{ key: 'task', title, ...task }],
        },
      };
    },
  },
  {
    name: 'list_ready_tasks',
    title: 'List tasks that can be claimed',
    description: 'Lists tasks of plans that wait for nothing and that nobody has claimed.',
    annotations: reads,
    input: {},
    output: { contract: 'ReadyTaskList' },
    operation: 'listReadyTasks',
  },
  {
    name: 'claim_task',
    title: 'Claim a task',
    description: 'Takes a ready task, by its plan and key. Of two claims the first one counts.',
    annotations: changes,
    input: {
      plan_id: planId,
      key: taskKey,
      by: { schema: text(128), description: 'Your name, unless you are an agent.', isOptional },
    },
    output: { contract: 'Plan' },
    operation: 'claimPlanTask',
  },
  {
    name: 'complete_task',
    title: 'Complete a claimed task',
    description: 'Ends a task that you have claimed; tasks that depend on it start.',
    annotations: starts,
    input: {
      plan_id: planId,
      key: taskKey,
      result: {
        schema: { type: 'string', maxLength: 100_000 },
        description: 'What was done, for the tasks that depend on it.',
        isOptional,
      },
      branch: { contract: 'BranchName', description: 'The branch with the work.', isOptional },
      failed: { schema: { type: 'boolean' }, description: 'It could not be done.', isOptional },
      by: { schema: text(128), description: 'Your name, as in the claim.', isOptional },
    },
    output: { contract: 'Plan' },
    operation: 'completePlanTask',
  },
];

/** As a title: one line without control characters. */
function firstLine(prompt: string): string {
  const line = prompt
    .trim()
    .split(/[\r\n]/, 1)[0]!
    .replaceAll(/\p{Cc}/gu, ' ')
    .trim();
  return line.slice(0, 100).toWellFormed() || 'Task';
}

export function isReadOnly({ annotations }: Tool): boolean {
  return annotations.readOnlyHint === true;
}
