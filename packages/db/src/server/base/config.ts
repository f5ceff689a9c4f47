import { address, byteSize, defineConfig, duration, path, secret } from '@millrace/kit/config';
import { logLevels } from '@millrace/kit/log';
import { z } from 'zod';

const paths = z.array(z.string().min(1)).min(1).meta({ expected: 'a list of dotted paths' });

const index = z.strictObject({
  fields: paths.optional(),
  search: paths.optional(),
  language: z.string().optional(),
  weights: z.record(z.string(), z.number()).optional(),
  vector: z.string().min(1).optional(),
  dims: z.int().min(1).optional(),
  metric: z.enum(['cosine', 'dot', 'l2']).optional(),
  storage: z.enum(['float32', 'int8']).optional(),
  unique: z.boolean().default(false),
  sparse: z.boolean().default(false),
  collation: z.enum(['ci']).optional(),
  where: z.record(z.string(), z.json()).optional(),
});

const collection = z.strictObject({
  indexes: z.array(index).default([]),
  default_ttl_ms: z.int().min(0).default(0),
});

const schema = z.strictObject({
  grpc: address().prefault('127.0.0.1:5433').meta({ description: 'gRPC listen address' }),
  grpc_transport: z.string().optional().meta({
    description: 'Deprecated and without effect',
    deprecation: 'gRPC has one transport now; remove it',
  }),
  http: address().prefault('127.0.0.1:8080').meta({ description: 'REST listen address' }),
  socket: path().optional().meta({
    description: 'Unix socket for the owner only (default: db.sock in the data directory)',
  }),
  data: path().default('./data').meta({ description: 'Directory of the database' }),
  upgrade: z
    .boolean()
    .default(true)
    .meta({ description: 'Back up and upgrade data of an older version; off: refuse it' }),
  keys_file: path().optional().meta({
    description: 'YAML file of API keys (default: one key, in db.key of the data directory)',
  }),
  auth: z
    .enum(['keys', 'none'])
    .default('keys')
    .meta({ description: 'none: require no key, on loopback addresses only' }),
  tls_cert: path().optional().meta({ description: 'Certificate (PEM) for both ports' }),
  tls_key: path().optional().meta({ description: 'Private key (PEM) of the certificate' }),
  client_ca: path()
    .optional()
    .meta({ description: 'Require client certificates signed by this CA (PEM)' }),
  follow: z
    .string()
    .regex(/^grpcs?:\/\/[^/\s]+$/)
    .optional()
    .meta({
      description: 'Follow this leader and serve reads only',
      expected: 'an address such as grpc://leader:5433',
      placeholder: 'url',
    }),
  follow_key: secret().optional().meta({ description: 'API key for the leader, with admin scope' }),
  min_acks: z
    .int()
    .min(0)
    .default(0)
    .meta({ description: 'Followers that must have a write on disk before it is acknowledged' }),
  cluster: z.string().min(1).optional().meta({
    description: 'Let etcd decide which node of a cluster leads',
    expected: 'an address such as etcd://10.0.0.1:2379,10.0.0.2:2379/name',
    placeholder: 'url',
  }),
  cluster_ttl: duration({ min: 2_000, max: 600_000 }).prefault('10s').meta({
    description: 'Lease of a node of a cluster: a lost leader is replaced after this time',
  }),
  cluster_ca: path().optional().meta({ description: 'Trust this CA (PEM) of etcds://' }),
  cluster_cert: path().optional().meta({ description: 'Client certificate (PEM) for etcds://' }),
  cluster_key: path().optional().meta({ description: 'Private key (PEM) of cluster_cert' }),
  cluster_user_file: path().optional().meta({
    description: 'File with the user of etcd, as one line user:password',
  }),
  advertise: z
    .string()
    .regex(/^grpcs?:\/\/[^/\s]+$/)
    .optional()
    .meta({
      description: 'gRPC address at which other nodes and clients reach this node',
      expected: 'an address such as grpc://10.0.0.1:5433',
      placeholder: 'url',
    }),
  durability: z
    .enum(['full', 'strict', 'relaxed'])
    .default('full')
    .meta({ description: 'full (alias strict): acknowledge writes once on disk; relaxed: before' }),
  max_inflight: z
    .int()
    .min(1)
    .default(10_000)
    .meta({ description: 'Maximum calls in flight; more are shed' }),
  max_watches: z.int().min(0).default(256).meta({ description: 'Maximum open watches' }),
  shed_target_ms: z
    .int()
    .min(0)
    .default(1_000)
    .meta({ description: 'Queue delay above which load is shed; 0: never' }),
  shed_interval_ms: z
    .int()
    .min(1)
    .default(1_000)
    .meta({ description: 'Time the queue delay must stay above the target before load is shed' }),
  max_peer_memory_bytes: byteSize().prefault('256MiB').meta({
    description: 'Memory for unfinished requests and unread responses; a quarter per connection',
  }),
  max_connections: z.int().min(1).default(1_000).meta({
    description: 'Maximum open connections per listener; strangers and idle ones make room',
  }),
  log_retention: z
    .strictObject({
      age: duration().prefault('24h').meta({ description: 'Maximum age of retained changes' }),
      bytes: byteSize().prefault('1GiB').meta({ description: 'Maximum size of retained changes' }),
    })
    .prefault({}),
  log_archive: path().optional().meta({
    description: 'Directory to archive the change log to, for point-in-time restore',
  }),
  log_archive_interval: duration()
    .prefault('10s')
    .meta({ description: 'How often new commits are archived' }),
  slow_query_ms: z
    .int()
    .min(0)
    .default(200)
    .meta({ description: 'Log queries that run longer than this, with their plan; 0: none' }),
  drain_timeout_ms: z
    .int()
    .min(0)
    .default(30_000)
    .meta({ description: 'Time for calls in flight to finish at shutdown' }),
  access_log: z
    .enum(['all', 'failures', 'off'])
    .default('failures')
    .meta({ description: 'Which calls are logged' }),
  log_level: z
    .enum(logLevels)
    .optional()
    .meta({ description: 'Log level (default: $MILLRACE_LOG, or info)' }),
  collections: z
    .record(z.string(), collection)
    .default({})
    .meta({ description: 'Indexes and default TTL, by collection' }),
});

/** Every setting of the server: a key in db.yaml, a flag and a variable MILLRACE_DB_... */
export const databaseConfig = defineConfig({ component: 'db', schema, unknownKeys: 'refuse' });

export type DatabaseSettings = z.output<typeof schema>;
