import { address, byteSize, defineConfig, duration, path } from '@millrace/kit/config';
import { logLevels } from '@millrace/kit/log';
import { readFileSync } from 'node:fs';
import { z } from 'zod';

// The outbound guard validates hosts and networks at startup.
const allowlistEntry = z.strictObject({
  scheme: z.enum(['http', 'https', 'grpc', 'grpcs']),
  host: z.string().min(1).meta({ expected: 'a host such as api.example.com or *.example.com' }),
  port: z
    .union([z.int().min(1).max(65_535), z.literal('*')])
    .optional()
    .meta({ expected: 'a port, or "*" for any' }),
  path_prefix: z.string().optional().meta({ expected: 'a path such as /hooks' }),
  networks: z.array(z.string()).optional().meta({ expected: 'a list such as [10.0.0.0/8]' }),
});

const schema = z.strictObject({
  listen: address().prefault('127.0.0.1:8081').meta({ description: 'Where the API is served' }),
  grpc: address().optional().meta({ description: 'Where gRPC is served; nowhere if absent' }),
  data: path().default('./data').meta({ description: 'Directory of the embedded store' }),
  storage: z
    .string()
    .regex(/^(?:embedded|postgres(?:ql)?:\/\/\S+)$/)
    .default('embedded')
    .meta({
      description: 'Where tasks are stored: embedded, or the URL of a PostgreSQL database',
      expected: 'embedded, or a URL such as postgres://user@host/db',
      placeholder: 'embedded|url',
    }),
  upgrade: z
    .boolean()
    .default(true)
    .meta({ description: 'Back up and upgrade data of an older version; off: refuse it' }),
  log_archive: path().optional().meta({
    description: 'Directory to archive the log of the embedded store to, for point-in-time restore',
  }),
  log_archive_interval: duration()
    .prefault('10s')
    .meta({ description: 'How often new commits are archived' }),
  tokens_file: path()
    .optional()
    .meta({ description: 'YAML file of bearer tokens and their grants; required' }),
  secrets_file: path()
    .optional()
    .meta({ description: 'YAML file of the secrets that callbacks are signed and sent with' }),
  callback_allowlist: z
    .array(allowlistEntry)
    .default([])
    .meta({ description: 'Allowed callback URLs: scheme, host, port, path_prefix, networks' }),
  extra_callback_allowlist: z
    .array(allowlistEntry)
    .default([])
    .meta({ description: 'Allowed callback URLs beside those of callback_allowlist' }),
  metrics_listen: address()
    .prefault('127.0.0.1:9464')
    .meta({ description: 'Where /metrics is served' }),
  tls_cert: path().optional().meta({ description: 'Certificate (PEM) for the API and gRPC' }),
  tls_key: path().optional().meta({ description: 'Private key (PEM) of the certificate' }),
  client_ca: path()
    .optional()
    .meta({ description: 'Require client certificates signed by this CA (PEM)' }),
  principal_submit_per_second: z
    .number()
    .min(0)
    .max(1_000_000)
    .default(0)
    .meta({ description: 'Tasks per second that a principal may submit to a queue; 0: no limit' }),
  max_inflight: z
    .int()
    .min(1)
    .default(1024)
    .meta({ description: 'Maximum concurrent requests; more are shed' }),
  max_waiting_claims: z
    .int()
    .min(1)
    .default(2_000)
    .meta({ description: 'Maximum waiting claims of a principal on a queue; beyond it, 429' }),
  max_schedules: z
    .int()
    .min(1)
    .default(1_000)
    .meta({ description: 'Maximum schedules of a queue; beyond it, 422' }),
  max_schedule_bytes: byteSize({ min: 1024 })
    .prefault('16MiB')
    .meta({ description: 'Maximum size of all schedules of a queue, payloads included' }),
  shed_target_ms: z
    .int()
    .min(0)
    .default(50)
    .meta({ description: 'Shed load while requests wait longer than this; 0: never' }),
  drain_timeout_ms: z
    .int()
    .min(0)
    .max(600_000)
    .default(30_000)
    .meta({ description: 'How long open requests and callbacks have to finish at shutdown' }),
  max_connections: z.int().min(1).default(1_000).meta({
    description: 'Maximum open connections to the API; strangers and idle ones make room, then 503',
  }),
  max_peer_memory_bytes: byteSize({ min: 1024 * 1024 })
    .prefault('256MiB')
    .meta({ description: 'Memory for unfinished requests and unsent responses; beyond it, 429' }),
  warm_up_ms: z.number().optional().meta({
    description: 'Deprecated and without effect',
    deprecation: 'the server no longer warms up before it starts; remove it',
  }),
  access_log: z
    .enum(['all', 'failures', 'off'])
    .default('failures')
    .meta({ description: 'Which requests get a line in the log' }),
  log_level: z
    .enum(logLevels)
    .optional()
    .meta({ description: 'How much to log (default: $MILLRACE_LOG, or info)' }),
});

/** Every setting of the server: a key of queue.yaml, a flag, and a variable MILLRACE_QUEUE_... */
export const queueConfig = defineConfig({ component: 'queue', schema, unknownKeys: 'refuse' });

export type QueueSettings = z.output<typeof schema>;

let known: string | undefined;

/** The version of the package, shared by all packages of Millrace. */
export function queueVersion(): string {
  if (known !== undefined) return known;
  // The package is two folders up from both src/server and dist/server.
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (known = (JSON.parse(text) as { version: string }).version);
}
