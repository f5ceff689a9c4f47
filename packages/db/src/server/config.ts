import { address, byteSize, defineConfig, duration, path, secret } from '@millrace/kit/config';
import { logLevels } from '@millrace/kit/log';
import { transportKinds } from '@millrace/wire/grpc';
import { z } from 'zod';

const index = z.strictObject({
  fields: z.array(z.string().min(1)).min(1).meta({ expected: 'a list of dotted paths' }),
  unique: z.boolean().default(false),
  sparse: z.boolean().default(false),
});

const collection = z.strictObject({
  indexes: z.array(index).default([]),
  default_ttl_ms: z.int().min(0).default(0),
});

const schema = z.strictObject({
  grpc: address().prefault('127.0.0.1:5433').meta({ description: 'Where gRPC is served' }),
  grpc_transport: z
    .enum(transportKinds)
    .default('own')
    .meta({ description: 'HTTP/2 server under gRPC: our own, or that of Node' }),
  http: address().prefault('127.0.0.1:8080').meta({ description: 'Where REST is served' }),
  socket: path().optional().meta({
    description: 'Unix socket for the owner alone (default: db.sock in the data directory)',
  }),
  data: path().default('./data').meta({ description: 'Directory of the database' }),
  keys_file: path()
    .optional()
    .meta({ description: 'YAML file of API keys (default: one key, in db.key of the data)' }),
  auth: z
    .enum(['keys', 'none'])
    .default('keys')
    .meta({ description: 'none: ask for no key, on a loopback address only' }),
  tls_cert: path().optional().meta({ description: 'Certificate (PEM) for both ports' }),
  tls_key: path().optional().meta({ description: 'Private key (PEM) of the certificate' }),
  client_ca: path()
    .optional()
    .meta({ description: 'Ask callers for a certificate of this authority (PEM)' }),
  follow: z
    .string()
    .regex(/^grpcs?:\/\/[^/\s]+$/)
    .optional()
    .meta({
      description: 'Follow this leader and serve reads alone',
      expected: 'an address such as grpc://leader:5433',
      placeholder: 'url',
    }),
  follow_key: secret().optional().meta({ description: 'API key for the leader, of admin scope' }),
  min_acks: z
    .int()
    .min(0)
    .default(0)
    .meta({ description: 'Followers that must have a write on disk before it is answered' }),
  durability: z
    .enum(['full', 'relaxed'])
    .default('full')
    .meta({ description: 'relaxed: answer writes before they are on disk' }),
  max_inflight: z
    .int()
    .min(1)
    .default(10_000)
    .meta({ description: 'Calls in flight at once; more are shed' }),
  max_watches: z.int().min(0).default(256).meta({ description: 'Watches open at once' }),
  shed_target_ms: z
    .int()
    .min(0)
    .default(1_000)
    .meta({ description: 'Queue delay above which load is shed; 0: never' }),
  shed_interval_ms: z
    .int()
    .min(1)
    .default(1_000)
    .meta({ description: 'How long the queue delay must stay above the target' }),
  max_peer_memory_bytes: byteSize().prefault('256MiB').meta({
    description: 'Memory for unfinished requests and unread responses; a quarter per connection',
  }),
  max_connections: z
    .int()
    .min(1)
    .default(1_000)
    .meta({ description: 'Connections open at once, for each listener' }),
  log_retention: z
    .strictObject({
      age: duration().prefault('24h').meta({ description: 'Keep changes this long' }),
      bytes: byteSize().prefault('1GiB').meta({ description: 'Keep this much of the changes' }),
    })
    .prefault({}),
  slow_query_ms: z
    .int()
    .min(0)
    .default(200)
    .meta({ description: 'Log queries that work longer than this, with their plan; 0: none' }),
  drain_timeout_ms: z
    .int()
    .min(0)
    .default(30_000)
    .meta({ description: 'How long calls under way have to finish at the end' }),
  access_log: z
    .enum(['all', 'failures', 'off'])
    .default('failures')
    .meta({ description: 'Which calls get a line in the log' }),
  log_level: z
    .enum(logLevels)
    .optional()
    .meta({ description: 'How much to log (default: $MILLRACE_LOG, or info)' }),
  collections: z
    .record(z.string(), collection)
    .default({})
    .meta({ description: 'Indexes and default lifetimes, by collection' }),
});

/** Every setting of the server: a key of db.yaml, a flag, and a variable MILLRACE_DB_... */
export const databaseConfig = defineConfig({ component: 'db', schema, unknownKeys: 'refuse' });

export type DatabaseSettings = z.output<typeof schema>;
