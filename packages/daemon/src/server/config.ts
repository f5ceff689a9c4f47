import {
  address,
  byteSize,
  count,
  defineConfig,
  duration,
  path,
  secret,
} from '@millrace/kit/config';
import { logLevels } from '@millrace/kit/log';
import { z } from 'zod';

export * from '../savings/index.js';
import { worktreeSchema } from '../sessions/drivers/worktree-rules.js';

export { tmuxSocket } from '../sessions/drivers/session-files.js';
export * from '../storage/data-files.js';
export { ensureToken } from './access/tokens.js';

const backendId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/)
  .meta({ expected: 'an id of letters, digits, dots, dashes or underscores' });

const httpUrl = () =>
  z
    .string()
    .regex(/^https?:\/\/[^\s/]+/)
    .meta({ expected: 'a URL such as http://127.0.0.1:11434', placeholder: 'url' });

/** A regular expression of JavaScript. */
const pattern = ({ hasGroup = false } = {}) =>
  z.string().superRefine((source, context) => {
    const trouble = patternTrouble(source, hasGroup);
    if (trouble !== undefined) context.addIssue({ code: 'custom', message: trouble });
  });

function patternTrouble(source: string, hasGroup: boolean): string | undefined {
  if (source === '') return 'is empty, which matches everything: write a regular expression';
  try {
    // An empty alternative matches, and shows how many groups there are.
    const groups = new RegExp(`${source}|`).exec('')!.length - 1;
    return hasGroup && groups === 0 ? 'needs a group, such as "resets at (.+)"' : undefined;
  } catch (error) {
    return `is not a regular expression: ${(error as Error).message}`;
  }
}

const fieldPath = z
  .string()
  .regex(/^[^.]+(?:\.[^.]+)*$/)
  .meta({ expected: 'names joined by dots, such as usage.input_tokens' });

const percent = z.number().min(0).max(100).default(0);

const dollars = z.number().min(0).default(0);

const variableName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*\*?$/)
  .meta({ expected: 'the name of a variable, or a prefix and *' });

const agents = z.object({
  env: z
    .union([z.array(variableName), z.record(z.string().regex(/^[A-Za-z_]\w*$/), z.string())])
    .default([])
    .meta({ description: 'Additional environment variables for agents', placeholder: 'names' }),
  env_inherit: z.enum(['allowlist', 'all']).default('allowlist').meta({
    description: "Which of the daemon's environment variables agents inherit",
    placeholder: 'allowlist|all',
  }),
  trust_workspace: z.array(backendId).default([]).meta({
    description: 'Backends whose own check for trusted workspaces is skipped (gemini)',
    placeholder: 'ids',
  }),
  adapters: z
    .record(backendId, z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]))
    .default({})
    .meta({
      description: 'Programs that speak the Agent Client Protocol for a backend, by its id',
      expected: 'backend ids with a program, or a list of the program and its arguments',
      placeholder: 'map',
    }),
  tools: z.boolean().default(true).meta({
    live: true,
    description: "Give agents the daemon's MCP tools, where their program takes them by a flag",
  }),
  token_rights: z.enum(['children', 'full']).default('children').meta({
    live: true,
    description: "What an agent's own token may do: act on agents that it started, or everything",
    placeholder: 'children|full',
  }),
  max_depth: z
    .int()
    .min(1)
    .max(10)
    .default(3)
    .meta({ live: true, description: 'How deep agents may start agents; one of a person is at 1' }),
  max_children: z
    .int()
    .min(0)
    .max(100)
    .default(8)
    .meta({ live: true, description: 'Most running agents that one agent may have started' }),
  feedback_interval: duration({ min: 100 }).prefault('60s').meta({
    live: true,
    description: 'How often CI and the pull request of a plan with feedback are read',
  }),
});

const drivers = z.object({
  default: z.enum(['auto', 'acp', 'tmux', 'headless']).default('auto').meta({
    live: true,
    description: 'Driver of new agents; auto: acp where a backend has it, else tmux, headless',
    placeholder: 'auto|acp|tmux|headless',
  }),
});

const permissions = z.object({
  policy: z
    .array(
      z.object({
        backend: z
          .string()
          .regex(/^[A-Za-z0-9._*-]{1,64}$/)
          .optional()
          .meta({ expected: 'the id of a backend, with * for any characters' }),
        tool: z
          .string()
          .regex(/^[^()\s][^()]*(?:\([^\n]*\))?$/)
          .meta({ expected: 'a tool such as execute, edit or execute(git status*)' }),
        action: z.enum(['allow', 'ask', 'deny']),
      }),
    )
    .default([])
    .meta({
      live: true,
      description: 'Rules that answer permission requests; the first match decides',
    }),
  timeout: duration({ min: 1000 }).prefault('1h').meta({
    live: true,
    description: 'How long a headless agent waits for a permission before it is denied',
  }),
});

/** What a person's own command line shows and writes; see sessions/cli/own-rules.ts. */
const cliRules = {
  ready: pattern().optional(),
  working: pattern().optional(),
  asks: z
    .array(
      z.strictObject({
        match: pattern(),
        options: z
          .array(
            z.union([
              z.string().min(1),
              z.strictObject({ label: z.string().min(1), keys: z.string().min(1) }),
            ]),
          )
          .default([]),
      }),
    )
    .optional(),
  limit: z
    .strictObject({ match: pattern(), reset: pattern({ hasGroup: true }).optional() })
    .optional(),
  prompt: z.enum(['argument', 'type', 'stdin']).optional(),
  transcript: z
    .strictObject({
      format: z.literal('jsonl'),
      path: z
        .string()
        .regex(/^(?:~?\/).*[^/]$/)
        .meta({ expected: 'an absolute path, or one that starts with ~/' }),
      fields: z.strictObject({
        input: fieldPath,
        output: fieldPath,
        cache_read: fieldPath.optional(),
        cache_write: fieldPath.optional(),
        model: fieldPath.optional(),
        at: fieldPath.optional(),
      }),
    })
    .optional(),
};

const backends = z.object({
  limit_retry: duration()
    .prefault('15m')
    .meta({ live: true, description: 'How long a rate-limited free backend is skipped' }),
  extra: z
    .array(
      z.object({
        id: backendId.refine((id) => id !== 'local', { error: 'is reserved: choose another id' }),
        binary: z.string().min(1).meta({ expected: 'the name of a program or an absolute path' }),
        args: z
          .array(z.string())
          .optional()
          .meta({ expected: 'a list of arguments, with {prompt} in place of the prompt' }),
        like: backendId
          .optional()
          .meta({ expected: 'the id of a built-in CLI that it behaves like' }),
        ...cliRules,
      }),
    )
    .default([])
    .meta({ description: 'Additional agent CLIs' }),
  local_url: httpUrl()
    .default('http://127.0.0.1:11434')
    .meta({ description: 'URL of the local model server (Ollama or OpenAI-compatible)' }),
  local_model: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Local model to use (default: the first one served)' }),
  think_timeout: duration({ min: 1 })
    .prefault('2m')
    .meta({ live: true, description: 'Timeout of one prompt on one backend' }),
});

const tokens = z.object({
  warn: count().prefault('200k').meta({ live: true, description: 'Context size of a warning' }),
  critical: count()
    .prefault('400k')
    .meta({ live: true, description: 'Context size of a critical alert' }),
  warn_pct: percent.meta({
    live: true,
    description: "Context size of a warning in percent of the model's window; 0: none",
  }),
  critical_pct: percent.meta({
    live: true,
    description: "Context size of a critical alert in percent of the model's window; 0: none",
  }),
  guard: z
    .boolean()
    .default(true)
    .meta({ live: true, description: 'Watch the context size of agents' }),
  warn_alert: z
    .boolean()
    .default(true)
    .meta({ live: true, description: 'Alert on each upward crossing' }),
  auto_compact: z
    .boolean()
    .default(true)
    .meta({ live: true, description: 'Compact idle agents whose context is critical' }),
  force_compact: z
    .boolean()
    .default(false)
    .meta({ live: true, description: 'Interrupt busy agents to compact them' }),
  compact_resume_prompt: z
    .string()
    .default('continue')
    .meta({ live: true, description: 'Prompt sent to an agent after a forced compaction' }),
  budget_gate: z
    .boolean()
    .default(true)
    .meta({ live: true, description: 'Require confirmation to spawn over a cap' }),
  budget_daily_usd: dollars.meta({ live: true, description: 'Cap on spend per day; 0: none' }),
  budget_weekly_usd: dollars.meta({ live: true, description: 'Cap on spend per 7 days; 0: none' }),
  budget_basis: z.enum(['greater', 'contract', 'exact']).default('greater').meta({
    live: true,
    description: 'Spend that a cap is compared with: family rates, exact prices, or the greater',
    placeholder: 'greater|contract|exact',
  }),
  assumed_session_usd: z.number().min(0).default(0.5).meta({
    live: true,
    description: 'Assumed cost of a running session until its spend is measured',
  }),
});

const notify = z.object({
  enabled: z
    .boolean()
    .default(false)
    .meta({ live: true, description: 'Show desktop notifications' }),
  webhook_enabled: z
    .boolean()
    .default(false)
    .meta({ live: true, description: 'Send alerts to the webhook' }),
  webhook_url: z
    .string()
    .regex(/^(?:https?:\/\/[^\s/]+.*)?$/)
    .default('')
    .meta({
      live: true,
      description: 'URL that receives alerts',
      expected: 'an http or https URL',
    }),
  webhook_secret: secret()
    .optional()
    .meta({ description: 'Secret that signs alerts (default: created at the first start)' }),
  stuck_after: duration({ min: 1 })
    .prefault('30m')
    .meta({ live: true, description: 'Idle time of an agent before an alert' }),
});

const labelText = (expected: string) =>
  z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/)
    .meta({ expected });

const queue = z.object({
  mode: z.enum(['push', 'pull']).default('push').meta({
    description: 'Whether the queue calls the daemon, or the daemon claims tasks from the queue',
    placeholder: 'push|pull',
  }),
  name: z
    .string()
    .regex(/^[a-z0-9][a-z0-9._-]{0,127}$/)
    .default('agents')
    .meta({ description: 'Queue to claim from in pull mode', expected: 'the name of a queue' }),
  labels: z
    .record(labelText('the name of a label'), labelText('the text of a label'))
    .default({})
    .meta({ description: 'Labels of this machine that tasks may require', placeholder: 'map' }),
  max_agents: z
    .int()
    .min(1)
    .max(100)
    .default(4)
    .meta({ description: 'Maximum number of tasks in progress in pull mode' }),
  lease: duration({ min: 1_000 })
    .prefault('1m')
    .meta({ description: 'Time without a sign of life before a pulled task is retried elsewhere' }),
  url: httpUrl().default('http://127.0.0.1:8081').meta({ description: 'URL of the queue server' }),
  token: secret()
    .optional()
    .meta({ description: 'Bearer token for the queue server; `ctl up` sets it' }),
  callback_secret: secret()
    .optional()
    .meta({ description: 'Secret that signs tasks from the queue; without it they are refused' }),
});

const database = z.object({
  url: httpUrl()
    .default('http://127.0.0.1:8080')
    .meta({ description: "URL of the database's REST bridge; those of a cluster, by commas" }),
  api_key: secret().optional().meta({ description: 'API key for the database, if it needs one' }),
});

const provider = (url: string, name: string) =>
  z
    .object({
      url: httpUrl()
        .default(url)
        .meta({ description: `URL that reports the usage of ${name}` }),
    })
    .prefault({});

const providers = z.object({
  codex: z
    .object({
      command: z
        .string()
        .min(1)
        .default('codex')
        .meta({ description: 'Program whose app-server reports the usage of codex' }),
    })
    .prefault({}),
  cursor: provider(
    'https://api2.cursor.sh/aiserver.v1.DashboardService/GetCurrentPeriodUsage',
    'cursor-agent',
  ),
  gemini: provider(
    'https://cloudcode-pa.googleapis.com/v1internal:retrieveUserQuota',
    'gemini and agy',
  ),
  claude: provider('https://api.anthropic.com/api/oauth/usage', 'claude'),
});

// Imported once into the registry, see storage/deprecated-import.ts.
const moved = { deprecation: 'it was imported and is ignored now; remove it and use ctl backend' };
const idList = z.array(z.string()).optional().meta(moved);

const autopilot = z.object({
  brain: z
    .object({
      backends: z.object({ free: idList, subscription: idList, pay_per_use: idList }).prefault({}),
      allow_pay_per_use: z.boolean().optional().meta(moved),
    })
    .prefault({}),
});

const schema = z.object({
  listen: address().prefault('127.0.0.1:8765').meta({ description: 'Address to listen on' }),
  metrics_listen: address()
    .optional()
    .meta({ description: 'Serve /metrics at this address too, without a token' }),
  data_dir: path()
    .optional()
    .meta({
      description: 'Data directory (default: $XDG_DATA_HOME/millrace)',
      aliases: ['data'],
    }),
  upgrade: z
    .boolean()
    .default(true)
    .meta({ description: 'Back up and upgrade data of an older version; off: refuse it' }),
  auth: z.enum(['token', 'none']).default('token').meta({
    description: 'Authentication of callers; none is allowed on loopback only',
    placeholder: 'token|none',
  }),
  token: secret().optional().meta({
    description: 'Bearer token with full access (default: daemon.token in the data directory)',
  }),
  read_only_token: secret()
    .optional()
    .meta({ description: 'Bearer token with read access (default: its file, likewise)' }),
  savings: z.boolean().default(true).meta({ description: 'Record savings and spend' }),
  savings_samples: z
    .boolean()
    .default(false)
    .meta({ description: 'Store samples of raw and shortened text' }),
  insights: z.boolean().default(true).meta({ description: 'Find patterns in session history' }),
  metrics: z.boolean().default(true).meta({ description: 'Record resource metrics' }),
  api_docs: z.boolean().default(true).meta({ description: 'Serve the documentation page' }),
  backends: backends.prefault({}),
  tokens: tokens.prefault({}),
  notify: notify.prefault({}),
  branches: z
    .object({
      enabled: z.boolean().default(true).meta({ description: "Track agents' branches" }),
    })
    .prefault({}),
  worktrees: z
    .object({
      hooks: z
        .boolean()
        .default(false)
        .meta({ description: 'Run hooks and filters of repositories when creating worktrees' }),
      repo_config: z.boolean().default(true).meta({
        live: true,
        description: 'Run the commands that .millrace.yaml of a repository has for its worktrees',
      }),
    })
    .prefault({}),
  repos: z
    .array(z.strictObject({ path: path(), worktree: worktreeSchema }))
    .default([])
    .meta({ live: true, description: 'Rules for the worktrees of repositories' }),
  agents: agents.prefault({}),
  permissions: permissions.prefault({}),
  drivers: drivers.prefault({}),
  queue: queue.prefault({}),
  database: database.prefault({}),
  providers: providers.prefault({}),
  autopilot: autopilot.prefault({}),
  max_connections: z
    .int()
    .min(1)
    .default(1_000)
    .meta({ description: 'Maximum open connections; strangers and idle ones make room, then 503' }),
  max_peer_memory_bytes: byteSize({ min: 1024 * 1024 })
    .prefault('256MiB')
    .meta({ description: 'Memory for unfinished requests and unsent responses; beyond it, 429' }),
  drain_timeout_ms: z
    .int()
    .min(0)
    .default(10_000)
    .meta({ description: 'Time for requests in flight to finish at shutdown' }),
  log_level: z
    .enum(logLevels)
    .optional()
    .meta({ description: 'Log level (default: $MILLRACE_LOG, or info)' }),
});

/** Every setting of the daemon: a key of config.yaml, a flag, and a variable MILLRACE_... */
export const daemonConfig = defineConfig({ component: 'daemon', schema, unknownKeys: 'warn' });

export type DaemonSettings = z.output<typeof schema>;
