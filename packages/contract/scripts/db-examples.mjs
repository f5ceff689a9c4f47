/** One example for each operation of the database's OpenAPI document. */

const ada = {
  id: '01JCZ8Q4V7W3S1N6K2M5T9X0AB',
  key: 'ada',
  rev: 1,
  data: { name: 'Ada', age: 36 },
  created_at: '2026-01-05T09:30:00.000Z',
  updated_at: '2026-01-05T09:30:00.000Z',
  seq: 1188,
};
const unkeyed = { ...ada, key: '' };
const older = { rev: 2, updated_at: '2026-01-06T10:00:00.000Z', seq: 1190 };
const replaced = { ...ada, ...older, data: { name: 'Ada', age: 37 } };
const merged = { ...ada, ...older, data: { name: 'Ada', age: 36, city: 'London' } };
const adults = { field: 'age', op: 'gt', value: 18 };
const plan = {
  index: 'age',
  rows_scanned: 1,
  rows_returned: 1,
  full_scan: false,
  sorted_in_memory: false,
  elapsed_ms: 0.4,
};

const change = {
  kind: 'WATCH_KIND_CHANGES',
  seq: 1190,
  epoch: 1,
  committed_at: '2026-01-06T10:00:00.000Z',
  changes: [
    {
      op: 'CHANGE_OP_UPDATE',
      collection: 'people',
      record: replaced,
      entered: false,
      left: false,
    },
  ],
  resume_token: 'AQAAAAAAAASm',
  leader_seq: 1190,
};
const watchResponses = {
  'application/x-ndjson': change,
  'text/event-stream': `id: ${change.resume_token}\ndata: ${JSON.stringify(change)}\n\n`,
};
const watchRequest = { filter: adults, include_initial: true };

const personSchema = {
  collection: 'people',
  schema: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
  validate: 'strict',
  updated_at: '2026-01-06T10:00:00.000Z',
  violation_count: 0,
};

export const examples = {
  dropCollection: { response: { deleted: 1200, seq: 1196 } },
  renameCollection: { request: { new_name: 'persons' }, response: { moved: 1200, seq: 1198 } },
  createIndex: {
    request: { fields: ['city', 'age'] },
    response: {
      index: {
        name: 'city,age',
        fields: ['city', 'age'],
        unique: false,
        sparse: false,
        state: 'building',
      },
      seq: 1199,
    },
  },
  dropIndex: { response: { seq: 1200 } },
  adviseIndexes: {
    response: {
      advice: [
        {
          collection: 'people',
          fields: ['city', 'age'],
          query_count: 12,
          total_ms: 3400.5,
          max_ms: 410.2,
          rows_scanned: 1200000,
          rows_returned: 84,
          filter: 'city eq, order by age',
          last_at: '2026-01-06T10:00:00.000Z',
        },
      ],
    },
  },
  setSchema: {
    request: { schema: personSchema.schema, validate: 'strict' },
    response: {
      applied: false,
      checked: 1200,
      violating: 1,
      violations: [{ id: ada.id, key: 'ada', path: 'name', message: 'must be string' }],
      seq: 0,
    },
  },
  getSchema: { response: { schema: personSchema } },
  removeSchema: { response: { seq: 1196 } },
  listSchemas: { response: { schemas: [personSchema] } },
  insert: { request: { data: ada.data }, response: { record: unkeyed } },
  findById: { response: { record: unkeyed } },
  update: {
    request: { data: replaced.data, request_id: 'birthday-37' },
    response: { record: { ...replaced, key: '' } },
  },
  updateMerge: {
    request: { data: { city: 'London' } },
    response: { record: { ...merged, key: '' } },
  },
  bulkWrite: {
    request: {
      operations: [
        { insert: { key: 'ada', data: ada.data } },
        { update: { key: 'bob', data: { age: 41 }, mode: 'UPDATE_MODE_MERGE' } },
        { delete: { key: 'cyd' } },
      ],
      ordered: true,
    },
    response: {
      results: [
        { status: 'OK', id: ada.id, key: 'ada', rev: 1, created: true, seq: 1188 },
        {
          status: 'FAILED',
          id: '',
          key: '',
          rev: 0,
          created: false,
          seq: 0,
          error: {
            code: 5,
            reason: 'KEY_NOT_FOUND',
            message: '"people" has no record with the key "bob".',
          },
        },
        { status: 'NOT_RUN', id: '', key: '', rev: 0, created: false, seq: 0 },
      ],
      seq: 1188,
    },
  },
  updateMany: {
    request: { filter: adults, patch: { adult: true }, limit: 5000 },
    response: { matched: 1200, changed: 1180, seq: 1193 },
  },
  deleteMany: { request: { filter: adults }, response: { matched: 3, changed: 3, seq: 1194 } },
  delete: { response: { seq: 1191 } },
  insertWithKey: {
    request: { key: 'ada', data: ada.data, ttl: '86400s' },
    response: { record: { ...ada, expires_at: '2026-01-06T09:30:00.000Z' } },
  },
  findByKey: { response: { record: ada } },
  updateByKey: { request: { data: replaced.data }, response: { record: replaced } },
  updateByKeyMerge: { request: { data: { city: 'London' } }, response: { record: merged } },
  deleteByKey: { response: { seq: 1191 } },
  upsert: {
    request: { data: { city: 'London' }, mode: 'MERGE' },
    response: { record: merged, created: false },
  },
  updateIfRev: {
    request: { expected_rev: 1, data: replaced.data },
    response: { record: replaced },
  },
  updateIfRevById: {
    request: { expected_rev: 1, data: replaced.data },
    response: { record: { ...replaced, key: '' } },
  },
  find: {
    request: { filter: adults, order_by: [{ field: 'age', desc: true }], explain: true },
    responses: {
      'application/json': { records: [ada], next_cursor: '', read_seq: 1190, plan },
      'application/x-ndjson': { record: ada },
    },
  },
  aggregate: {
    request: {
      group_by: ['city'],
      aggregates: [{ name: 'oldest', op: 'max', field: 'age' }],
      order_by: [{ field: 'oldest', desc: true }],
    },
    response: {
      groups: [{ key: { city: 'London' }, count: 2, values: { oldest: 37 } }],
      read_seq: 1190,
    },
  },
  distinct: {
    request: { field: 'city', filter: adults },
    response: { values: ['London', 'Zürich'], read_seq: 1190 },
  },
  watch: { request: watchRequest, responses: watchResponses },
  watchGet: { responses: watchResponses },
  watchDatabase: { request: { start_seq: 1190 }, responses: watchResponses },
  beginTx: {
    request: { timeout: '30s' },
    response: {
      tx_id: '01JCZ8R1B2C3D4E5F6G7H8J9K0',
      read_seq: 1190,
      expires_at: '2026-01-06T10:00:30.000Z',
    },
  },
  commitTx: {
    response: { seq: 1191, operations: 2, committed_at: '2026-01-06T10:00:01.000Z' },
  },
  rollbackTx: { response: {} },
  compact: {
    request: { dry_run: false },
    response: {
      bytes_before: 104857600,
      bytes_after: 41943040,
      oldest_seq: 950,
      elapsed: '1.250s',
    },
  },
  backup: { request: { format: 'SNAPSHOT' }, response: '(binary)' },
  promote: {
    request: { force: false },
    response: { role: 'leader', epoch: 2, seq: 1190, lag: 0 },
  },
  replicationStatus: {
    response: {
      role: 'leader',
      epoch: 1,
      seq: 1190,
      durable_seq: 1190,
      oldest_seq: 950,
      lineage_id: '01JCZ8P0000000000000000000',
      leader_address: '',
      leader_seq: 1190,
      lag: 0,
      lag_time: '0s',
      state: 'leading',
      followers: [
        {
          follower_id: '01JCZ8S0000000000000000000',
          acked_seq: 1188,
          lag: 2,
          connected_at: '2026-01-06T09:00:00.000Z',
          last_ack_at: '2026-01-06T09:59:59.000Z',
          address: 'grpc://10.0.0.3:5433',
        },
      ],
      durability: 'full',
      node_id: '01JCZ8N0000000000000000000',
      version: '1.0.0',
      min_acks: 0,
      saved_tails: [],
      collections: [],
      auth: 'keys',
    },
  },
};
