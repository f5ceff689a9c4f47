/**
 * Every reason the database gives for refusing a call: the closed list behind `ErrorInfo.reason`,
 * on gRPC and on REST. The OpenAPI document is generated from it, so this file imports nothing.
 */

/** The canonical gRPC codes by name; the number is what travels in `grpc-status`. */
export const grpcCodes = {
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;
export type GrpcCode = keyof typeof grpcCodes;

/** grpc-gateway's table: the HTTP status of each gRPC code on the REST bridge. */
export const httpStatusOfCode = {
  CANCELLED: 499,
  UNKNOWN: 500,
  INVALID_ARGUMENT: 400,
  DEADLINE_EXCEEDED: 504,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  PERMISSION_DENIED: 403,
  RESOURCE_EXHAUSTED: 429,
  FAILED_PRECONDITION: 400,
  ABORTED: 409,
  OUT_OF_RANGE: 400,
  UNIMPLEMENTED: 501,
  INTERNAL: 500,
  UNAVAILABLE: 503,
  DATA_LOSS: 500,
  UNAUTHENTICATED: 401,
} as const satisfies Record<GrpcCode, number>;

/** `ErrorInfo.domain` of every error of the database. */
export const dbErrorDomain = 'millrace.db';

export interface DbReasonEntry {
  readonly code: GrpcCode;
  readonly status: number;
  /** One sentence for the caller: what is wrong and, where it helps, what to do. */
  readonly meaning: string;
  /** Keys of `ErrorInfo.metadata` that this reason always fills. */
  readonly metadata?: readonly string[];
  /** The methods that give it; `any` for all of them, `routing` when no method was reached. */
  readonly methods: 'any' | 'routing' | readonly string[];
  /** The methods that give it only to another node of the same database, which speaks gRPC. */
  readonly toPeers?: readonly string[];
}

const reads = ['FindById', 'FindByKey', 'Find', 'Aggregate', 'Distinct'];
const inserts = ['Insert', 'InsertWithKey', 'Upsert', 'UpdateIfRev', 'BulkWrite'];
const updates = ['Update', 'UpdateByKey', 'Upsert', 'UpdateIfRev', 'BulkWrite', 'UpdateMany'];
const deletes = ['Delete', 'DeleteByKey', 'DeleteMany'];
const bodies = [...new Set([...inserts, ...updates])];
const writes = [...bodies, ...deletes];
const collectionWrites = ['DropCollection', 'RenameCollection', 'CreateIndex', 'DropIndex'];
const catalogWrites = ['SetSchema', 'RemoveSchema', ...collectionWrites];
const changes = [...writes, ...catalogWrites];
const byKey = ['FindByKey', 'UpdateByKey', 'DeleteByKey'];
const keyed = ['InsertWithKey', ...byKey, 'Upsert', 'UpdateIfRev', 'BulkWrite'];
const inTransactions = [...writes, ...reads];
const replication = ['Watch', 'Backup', 'ReplicationStatus'];

export const dbReasons = {
  // The request itself
  BAD_REQUEST: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning:
      'The request cannot be read or a field is not as described; see the BadRequest detail.',
    methods: 'any',
  },
  REQUEST_TOO_LARGE: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The request is larger than 4 MiB (16 MiB for BulkWrite); send less at once.',
    metadata: ['limit_bytes'],
    methods: 'any',
  },
  UNSUPPORTED_MEDIA_TYPE: {
    code: 'INVALID_ARGUMENT',
    status: 415,
    meaning: 'The body has another media type than application/json; set Content-Type.',
    methods: 'any',
  },
  BAD_COLLECTION: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning:
      'The collection name must be a letter followed by up to 63 letters, digits, "_", "." or "-".',
    metadata: ['collection'],
    methods: [...changes, ...reads, 'GetSchema', 'Watch', 'Backup'],
  },
  BAD_KEY: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The key must have 1 byte to 1 KiB of UTF-8 without NUL.',
    methods: keyed,
  },
  BAD_ID: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The id to insert with is not a ULID; leave it out to have one made.',
    methods: ['Insert', 'InsertWithKey', 'BulkWrite'],
  },
  BAD_DATA: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The data is missing, not a JSON object, or more than 32 levels deep.',
    methods: bodies,
  },
  BAD_UPDATE: {
    code: 'INVALID_ARGUMENT',
    status: 422,
    meaning:
      'The update has an unknown operator, or a path or value that its operator does not take.',
    methods: updates,
  },
  TYPE_MISMATCH: {
    code: 'INVALID_ARGUMENT',
    status: 422,
    meaning: 'An operator of the update does not fit the type of a value in the record.',
    metadata: ['path'],
    methods: updates,
  },
  SCHEMA_VIOLATION: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The document does not match the schema of the collection.',
    metadata: ['collection', 'path'],
    methods: [...bodies, 'CommitTx'],
  },
  BAD_SCHEMA: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The schema is not valid JSON Schema 2020-12, or refers to another document.',
    methods: ['SetSchema'],
  },
  RECORD_TOO_LARGE: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The record would be larger than 2 MiB.',
    metadata: ['limit_bytes'],
    methods: bodies,
  },
  BAD_FILTER: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The filter has an unknown op, a value the op does not take, or an unsafe regex.',
    methods: ['Find', 'Aggregate', 'Distinct', 'Watch', 'UpdateMany', 'DeleteMany', 'CreateIndex'],
  },
  BAD_CURSOR: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The cursor is not one this query was given; start again without it.',
    methods: ['Find'],
  },
  BAD_RESUME_TOKEN: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The resume token is not one this database gave; start again with include_initial.',
    methods: ['Watch'],
  },
  REQUEST_ID_REUSED: {
    code: 'INVALID_ARGUMENT',
    status: 400,
    meaning: 'The request_id was used for another request; make up a new one.',
    metadata: ['request_id'],
    methods: [...writes, 'BeginTx'],
  },

  // Callers
  MISSING_KEY: {
    code: 'UNAUTHENTICATED',
    status: 401,
    meaning: 'Send an API key as x-api-key or as Authorization: Bearer.',
    methods: 'any',
  },
  UNKNOWN_KEY: {
    code: 'UNAUTHENTICATED',
    status: 401,
    meaning: 'The API key is not known here, or was revoked.',
    methods: 'any',
  },
  EXPIRED_KEY: {
    code: 'UNAUTHENTICATED',
    status: 401,
    meaning: 'The API key has expired; ask for a new one.',
    methods: 'any',
  },
  SCOPE: {
    code: 'PERMISSION_DENIED',
    status: 403,
    meaning: 'The API key does not give this access to this collection.',
    metadata: ['access'],
    methods: 'any',
  },

  // What is there
  RECORD_NOT_FOUND: {
    code: 'NOT_FOUND',
    status: 404,
    meaning: 'No record of the collection has this id.',
    metadata: ['collection', 'id'],
    methods: ['FindById', 'Update', 'Delete', 'UpdateIfRev', 'BulkWrite'],
  },
  KEY_NOT_FOUND: {
    code: 'NOT_FOUND',
    status: 404,
    meaning: 'No record of the collection has this key.',
    metadata: ['collection', 'key'],
    methods: ['FindByKey', 'UpdateByKey', 'DeleteByKey', 'UpdateIfRev', 'BulkWrite'],
  },
  COLLECTION_NOT_FOUND: {
    code: 'NOT_FOUND',
    status: 404,
    meaning: 'There is no collection of this name.',
    metadata: ['collection'],
    methods: ['DropCollection', 'RenameCollection'],
  },
  COLLECTION_EXISTS: {
    code: 'ALREADY_EXISTS',
    status: 409,
    meaning: 'Another collection has the new name already.',
    metadata: ['collection'],
    methods: ['RenameCollection'],
  },
  DECLARED_IN_SETTINGS: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning: 'The settings of the server declare it; change them and restart the server.',
    metadata: ['collection'],
    methods: ['DropCollection', 'RenameCollection', 'DropIndex'],
  },
  INDEX_NOT_FOUND: {
    code: 'NOT_FOUND',
    status: 404,
    meaning: 'The collection has no such index.',
    metadata: ['collection', 'index'],
    methods: ['DropIndex'],
  },
  SCHEMA_NOT_FOUND: {
    code: 'NOT_FOUND',
    status: 404,
    meaning: 'The collection has no schema.',
    metadata: ['collection'],
    methods: ['GetSchema', 'RemoveSchema'],
  },
  DUPLICATE_KEY: {
    code: 'ALREADY_EXISTS',
    status: 409,
    meaning: 'The key is taken; use upsert to write either way.',
    metadata: ['collection', 'key'],
    methods: ['RenameCollection', 'InsertWithKey', 'BulkWrite'],
  },
  DUPLICATE_ID: {
    code: 'ALREADY_EXISTS',
    status: 409,
    meaning: 'A record with this id is there already.',
    metadata: ['collection', 'id'],
    methods: ['RenameCollection', 'Insert', 'InsertWithKey', 'BulkWrite'],
  },
  UNIQUE_VIOLATION: {
    code: 'ALREADY_EXISTS',
    status: 409,
    meaning: 'Another record has the same values in a unique index.',
    metadata: ['collection', 'index'],
    methods: [...bodies, 'CommitTx'],
  },
  REV_MISMATCH: {
    code: 'ABORTED',
    status: 409,
    meaning: 'The record has another revision than the expected one; read it again.',
    metadata: ['current_rev'],
    methods: ['UpdateIfRev', 'BulkWrite'],
  },
  INDEX_REQUIRED: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning:
      'No index serves this query: allow_full_scan is false, a search has no search index, or a lookup has none.',
    methods: ['Find', 'Aggregate'],
  },
  CURSOR_EXPIRED: {
    code: 'OUT_OF_RANGE',
    status: 400,
    meaning: 'The cursor is too old; start again without it.',
    methods: ['Find'],
  },
  WATCH_COMPACTED: {
    code: 'OUT_OF_RANGE',
    status: 400,
    meaning: 'The change log no longer reaches back that far; start again from the present state.',
    metadata: ['oldest_seq'],
    methods: ['Watch', 'Backup'],
  },
  GROUP_LIMIT: {
    code: 'RESOURCE_EXHAUSTED',
    status: 429,
    meaning: 'There are more than 100,000 groups; narrow the filter or group by less.',
    metadata: ['limit'],
    methods: ['Aggregate', 'Distinct'],
  },

  // Transactions
  TX_NOT_FOUND: {
    code: 'NOT_FOUND',
    status: 404,
    meaning: 'No transaction has this tx_id.',
    metadata: ['tx_id'],
    methods: [...inTransactions, 'CommitTx', 'RollbackTx'],
  },
  TX_EXPIRED: {
    code: 'ABORTED',
    status: 409,
    meaning: 'The transaction lived too long or was idle too long; begin again.',
    metadata: ['tx_id'],
    methods: [...inTransactions, 'CommitTx', 'RollbackTx'],
  },
  TX_CONFLICT: {
    code: 'ABORTED',
    status: 409,
    meaning: 'What the transaction read has changed since; begin again.',
    metadata: ['tx_id'],
    methods: ['CommitTx'],
  },
  TX_CLOSED: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning: 'The transaction was committed or rolled back already; begin a new one.',
    metadata: ['tx_id'],
    methods: [...inTransactions, 'CommitTx', 'RollbackTx'],
  },
  TX_READ_ONLY: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning: 'The transaction was begun with read_only and cannot write.',
    metadata: ['tx_id'],
    methods: writes,
  },
  TX_LIMIT: {
    code: 'RESOURCE_EXHAUSTED',
    status: 429,
    meaning: 'A transaction has at most 1,000 operations and 8 MiB, and their number is bounded.',
    methods: [...inTransactions, 'BeginTx'],
  },

  // Replication
  READ_ONLY_REPLICA: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning: 'This node is a follower and takes no writes; send them to the leader it names.',
    metadata: ['leader'],
    methods: [...changes, 'BeginTx', 'CommitTx'],
  },
  NOT_LEADER: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning: 'This node does not lead, so no follower can follow it; follow the leader it names.',
    metadata: ['leader'],
    methods: [],
    toPeers: replication,
  },
  FENCED: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning: 'This node has met a newer leader and takes no writes any more.',
    metadata: ['epoch', 'leader'],
    methods: [...changes, 'BeginTx', 'CommitTx', 'Promote'],
    toPeers: replication,
  },
  DIVERGED: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning:
      'The follower has commits that are not in the history of the leader; it must set them aside.',
    metadata: ['diverged_after_seq'],
    methods: [],
    toPeers: replication,
  },
  LINEAGE_MISMATCH: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning: 'The two nodes hold different databases; the follower needs an empty data directory.',
    metadata: ['lineage_id'],
    methods: [],
    toPeers: replication,
  },
  REPLICA_LAG: {
    code: 'FAILED_PRECONDITION',
    status: 400,
    meaning: 'The follower lacks commits of the leader; wait, or promote with force and lose them.',
    metadata: ['lag'],
    methods: ['Promote'],
  },
  REPLICA_BEHIND: {
    code: 'UNAVAILABLE',
    status: 503,
    meaning: 'The node did not reach min_seq in time; try again or ask the leader.',
    metadata: ['seq', 'min_seq'],
    methods: [...reads, 'BeginTx'],
  },
  NOT_ENOUGH_ACKS: {
    code: 'UNAVAILABLE',
    status: 503,
    meaning:
      'The write is on the disk of the leader, but too few followers confirmed it in time; repeat it with the same request_id.',
    metadata: ['min_acks', 'acks'],
    methods: [...changes, 'CommitTx'],
  },

  // The server
  OVERLOADED: {
    code: 'RESOURCE_EXHAUSTED',
    status: 429,
    meaning: 'The server sheds load; try again after the time in RetryInfo or Retry-After.',
    methods: 'any',
  },
  RATE_LIMITED: {
    code: 'RESOURCE_EXHAUSTED',
    status: 429,
    meaning:
      'Kept for a limit on the calls of one caller, which this version does not have; take it as OVERLOADED.',
    methods: 'any',
  },
  WATCH_LIMIT: {
    code: 'RESOURCE_EXHAUSTED',
    status: 429,
    meaning: 'The server has as many open watches as it allows; close one or try again later.',
    metadata: ['limit'],
    methods: ['Watch'],
  },
  DISK_FULL: {
    code: 'RESOURCE_EXHAUSTED',
    status: 429,
    meaning: 'The disk of the server is full; nothing was written.',
    methods: [...changes, 'CommitTx', 'Compact'],
  },
  STORAGE_FAILED: {
    code: 'UNAVAILABLE',
    status: 503,
    meaning:
      'The log could not be written, so the server takes no more writes and does not know whether the last ones are on disk; check the disk and restart the server.',
    methods: [...changes, 'CommitTx'],
  },
  ALREADY_RUNNING: {
    code: 'ABORTED',
    status: 409,
    meaning: 'The same kind of administrative work is under way; wait for it to end.',
    methods: ['Compact', 'Backup', 'Promote'],
  },
  NOT_READY: {
    code: 'UNAVAILABLE',
    status: 503,
    meaning: 'The database is not open yet, or this follower has no first copy yet; try again.',
    methods: 'any',
  },
  CONNECTION_LIMIT: {
    code: 'UNAVAILABLE',
    status: 503,
    meaning: 'The server has its maximum of open connections, all of them in use; try again later.',
    methods: 'any',
  },
  SHUTTING_DOWN: {
    code: 'UNAVAILABLE',
    status: 503,
    meaning: 'The server is shutting down; try again when it is back.',
    methods: 'any',
  },
  DEADLINE_EXCEEDED: {
    code: 'DEADLINE_EXCEEDED',
    status: 504,
    meaning: 'The deadline of the call passed; a write may still have been carried out.',
    methods: 'any',
  },
  CANCELLED: {
    code: 'CANCELLED',
    status: 499,
    meaning: 'The caller gave the call up.',
    methods: 'any',
  },
  CORRUPT: {
    code: 'DATA_LOSS',
    status: 500,
    meaning: 'Stored data failed its check; run "ctl db verify" and restore from a backup.',
    methods: 'any',
  },
  INTERNAL: {
    code: 'INTERNAL',
    status: 500,
    meaning: 'A fault of the server; its log has the details.',
    methods: 'any',
  },
  NO_SUCH_ROUTE: {
    code: 'NOT_FOUND',
    status: 404,
    meaning: 'Nothing is served at this path; see /docs.',
    methods: 'routing',
  },
  NO_SUCH_METHOD: {
    code: 'UNIMPLEMENTED',
    // HTTP's status of a wrong method (RFC 9110), with Allow; gRPC has no code for it.
    status: 405,
    meaning: 'The service has no such method, or the path does not take this HTTP method.',
    methods: 'routing',
  },
} as const satisfies Record<string, DbReasonEntry>;

export type DbReason = keyof typeof dbReasons;
