// Generated from proto/millrace/db/v1/db.proto and src/db-reasons.ts. Do not edit.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
  schemas: {
    /** @description One value to compute for each group. */
    Accumulator: {
      /** @description Name of the value in the answer. */
      name: string;
      /**
       * @description What to compute. All but `count` need a `field`; sum and avg take the numbers, first and last go by id.
       * @enum {string}
       */
      op: 'count' | 'sum' | 'avg' | 'min' | 'max' | 'count_distinct' | 'first' | 'last';
      /** @description Dotted path into `data`. With `count`: only records that have the field. */
      field?: string;
    };
    /** @description Indexes that would have helped. */
    AdviseIndexesResponse: {
      /** @description By the time that the queries took, longest first. */
      advice: components['schemas']['IndexAdvice'][];
    };
    /** @description What to compute. */
    AggregateBody: {
      /** @description Which records. Left out: all. */
      filter?: components['schemas']['Filter'];
      /** @description Dotted paths whose values make a group. Empty: one group of everything. */
      group_by?: string[];
      /** @description Values to compute for each group, by name. */
      aggregates?: components['schemas']['Accumulator'][];
      /** @description Which groups to return. Its fields name accumulators or group fields. */
      having?: components['schemas']['Filter'];
      /** @description In which order. Its fields name accumulators or group fields. Empty: by group. */
      order_by?: components['schemas']['OrderBy'][];
      /** @description How many groups at most. 0 or left out: all. */
      limit?: number;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /**
       * Format: int64
       * @description Read at this commit or later: a follower waits until it has it, to the deadline of the call (5 s if none), then answers UNAVAILABLE with REPLICA_BEHIND.
       */
      min_seq?: number;
      /** @description Add `plan` to the answer: the index used, rows scanned, rows returned. */
      explain?: boolean;
      /** @description What makes a group, in place of `group_by`: paths and expressions. REST takes these objects in `group_by`, too. */
      group_expressions?: components['schemas']['GroupExpression'][];
      /** @description Joins records of other collections, before groups are made. */
      lookup?: components['schemas']['Lookup'][];
    };
    /** @description One group. */
    AggregateGroup: {
      /** @description The group: value by path of `group_by`. Empty without `group_by`. */
      key: {
        [key: string]: unknown;
      };
      /**
       * Format: int64
       * @description How many records it has.
       */
      count: number;
      /** @description The computed values, by accumulator name. */
      values: {
        [key: string]: unknown;
      };
    };
    /** @description Groups: all of them on REST, one batch on gRPC. */
    AggregateResponse: {
      /** @description The groups, in order. */
      groups: components['schemas']['AggregateGroup'][];
      /**
       * Format: int64
       * @description Commit at which the snapshot was read.
       */
      read_seq: number;
      /** @description How the query was carried out. Only with `explain`, in the last message of a stream. */
      plan?: components['schemas']['QueryPlan'];
    };
    /** @description What to back up. */
    BackupBody: {
      /** @description Snapshot (unless you say otherwise) or NDJSON. */
      format?: components['schemas']['BackupFormat'];
      /** @description Names of collections. Empty: all. */
      collections?: string[];
      /**
       * Format: int64
       * @description Only what was committed after this: an increment on a backup with that `seq`.
       */
      since_seq?: number;
    };
    /**
     * @description What a backup is made of.
     *
     *     - `SNAPSHOT`: Everything there is, compact, to restore from.
     *     - `NDJSON`: One JSON object for each record and line, to read elsewhere.
     *
     *     The long spelling (`BACKUP_FORMAT_SNAPSHOT`) is taken too.
     * @enum {string}
     */
    BackupFormat: 'SNAPSHOT' | 'NDJSON' | 'BACKUP_FORMAT_SNAPSHOT' | 'BACKUP_FORMAT_NDJSON';
    /** @description A transaction to begin. */
    BeginTxBody: {
      /** @description It will not write. Such a transaction never conflicts, and a follower serves it. */
      read_only?: boolean;
      /** @description How long it may live, as `30s`; 60 s unless you say otherwise, and at most. */
      timeout?: string;
      /** @description Any text you make up once for this transaction. Sent again within 10 minutes, the same request does not begin a second one. */
      request_id?: string;
      /**
       * Format: int64
       * @description Take the snapshot at this commit or later: a follower waits until it has it, to the deadline of the call (5 s if none), then answers UNAVAILABLE with REPLICA_BEHIND.
       */
      min_seq?: number;
    };
    /** @description The transaction. */
    BeginTxResponse: {
      /** @description Send it with every operation that belongs to the transaction. */
      tx_id: string;
      /**
       * Format: int64
       * @description Commit at which it reads.
       */
      read_seq: number;
      /**
       * Format: date-time
       * @description When it expires at the latest.
       */
      expires_at: string;
    };
    /** @description The lower edge of the interval `[a, b)` that has the value. Null outside of all. */
    Bucket: {
      /** @description Dotted path of a field. */
      field: string;
      /** @description At least two numbers, or texts, that rise. */
      edges: unknown[];
    };
    /** @description Which record to delete. Send `id` or `key`, not both. */
    BulkDelete: {
      /** @description Id of the record. */
      id?: string;
      /** @description Key of the record. */
      key?: string;
    };
    /** @description Why one write of a bulk failed. */
    BulkError: {
      /** @description The canonical gRPC code. */
      code: number;
      /** @description One of the closed list of reasons. */
      reason: string;
      /** @description What happened, for a person. */
      message: string;
    };
    /** @description A record to insert. */
    BulkInsert: {
      /** @description Id of the record, a ULID. Left out: the server makes one. */
      id?: string;
      /** @description Key of the record. Left out: it has none. */
      key?: string;
      /** @description The body, at most 2 MiB and 32 levels. */
      data: {
        [key: string]: unknown;
      };
      /** @description How long the record lives from now, as `3.5s`. Left out: the collection's default. `0s`: no expiry. */
      ttl?: string;
    };
    /** @description One write of a bulk: exactly one of the fields is set. */
    BulkOperation: {
      /** @description Insert a record. */
      insert?: components['schemas']['BulkInsert'];
      /** @description Insert or change a record by its key. */
      upsert?: components['schemas']['BulkUpsert'];
      /** @description Change a record. */
      update?: components['schemas']['BulkUpdate'];
      /** @description Delete a record. */
      delete?: components['schemas']['BulkDelete'];
    };
    /** @description What became of one write of a bulk. */
    BulkResult: {
      /**
       * @description Whether it was carried out.
       * @enum {string}
       */
      status: 'OK' | 'FAILED' | 'NOT_RUN';
      /** @description Id of the record. */
      id: string;
      /** @description Key of the record. */
      key: string;
      /**
       * Format: int64
       * @description Revision of the record after the write; of a deleted one its last.
       */
      rev: number;
      /** @description True when the record was inserted. */
      created: boolean;
      /**
       * Format: int64
       * @description Commit of the write. 0 inside a transaction.
       */
      seq: number;
      /** @description Why it failed. */
      error?: components['schemas']['BulkError'];
      /** @description The record. Only with `return_records`. */
      record?: components['schemas']['Record'];
    };
    /** @description A change of a record. Send `id` or `key`, not both. */
    BulkUpdate: {
      /** @description Id of the record. */
      id?: string;
      /** @description Key of the record. */
      key?: string;
      /** @description The new body, or what to merge into it. */
      data?: {
        [key: string]: unknown;
      };
      /** @description Replace (unless you say otherwise) or merge. */
      mode?: components['schemas']['UpdateMode'];
      /** @description How long the record lives from now, as `3.5s`. Left out: its expiry stays. `0s`: no expiry. */
      ttl?: string;
      /**
       * Format: int64
       * @description Revision the record must have. Left out: any.
       */
      expected_rev?: number;
      /** @description Operators to apply to the record, in place of `data`: `{"$inc": {"n": 1}}`. `$set`, `$unset`, `$inc`, `$mul`, `$min`, `$max`, `$push`, `$addToSet`, `$pull`, `$rename`, `$currentDate`, each with paths and values; no two write the same path. */
      update?: {
        [key: string]: unknown;
      };
    };
    /** @description A record to insert or change, by key. */
    BulkUpsert: {
      /** @description Key of the record. */
      key: string;
      /** @description The body, or what to merge into it. */
      data?: {
        [key: string]: unknown;
      };
      /** @description Replace (unless you say otherwise) or merge, when the record exists. */
      mode?: components['schemas']['UpdateMode'];
      /** @description How long the record lives from now, as `3.5s`. Left out: its expiry stays. `0s`: no expiry. */
      ttl?: string;
      /** @description Operators to apply to the record, in place of `data`: `{"$inc": {"n": 1}}`. `$set`, `$unset`, `$inc`, `$mul`, `$min`, `$max`, `$push`, `$addToSet`, `$pull`, `$rename`, `$currentDate`, each with paths and values; no two write the same path. */
      update?: {
        [key: string]: unknown;
      };
    };
    /** @description Many writes of one collection. */
    BulkWriteBody: {
      /** @description The writes, at most 10,000. */
      operations: components['schemas']['BulkOperation'][];
      /** @description Stop at the first failure. */
      ordered?: boolean;
      /** @description One commit, or nothing. Not together with `tx_id`. */
      atomic?: boolean;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Answer with the records as they are after the writes. */
      return_records?: boolean;
    };
    /** @description What became of each write. */
    BulkWriteResponse: {
      /** @description One for each operation, in order. */
      results: components['schemas']['BulkResult'][];
      /**
       * Format: int64
       * @description The last commit of this call. 0 when nothing was committed.
       */
      seq: number;
    };
    /** @description One change of one record. */
    Change: {
      /** @description What happened. */
      op: components['schemas']['ChangeOp'];
      /** @description Name of the collection. */
      collection: string;
      /** @description The record after the change. After a delete or expiry only id, key, rev and seq. */
      record: components['schemas']['Record'];
      /** @description The record before the change. Only with `include_before`, and not for an insert. */
      before?: components['schemas']['Record'];
      /** @description True when the record matches the filter now and did not before. */
      entered: boolean;
      /** @description True when the record matched the filter before and does not now. */
      left: boolean;
    };
    /**
     * @description What happened to a record.
     *
     *     - `CHANGE_OP_INSERT`: It was inserted.
     *     - `CHANGE_OP_UPDATE`: It was changed.
     *     - `CHANGE_OP_DELETE`: It was deleted by a caller.
     *     - `CHANGE_OP_EXPIRE`: It was deleted because its time was up.
     * @enum {string}
     */
    ChangeOp: 'CHANGE_OP_INSERT' | 'CHANGE_OP_UPDATE' | 'CHANGE_OP_DELETE' | 'CHANGE_OP_EXPIRE';
    /** @description A node of a cluster. */
    ClusterMember: {
      /** @description Its node id. */
      node_id: string;
      /** @description Its gRPC address. */
      address: string;
      /** @description Whether it has a live lease in etcd. */
      running: boolean;
    };
    /** @description A cluster as one of its nodes sees it. */
    ClusterStatus: {
      /** @description Its name in etcd. */
      name: string;
      /** @description Node id of the leader. Empty while there is none. */
      leader_id: string;
      /** @description gRPC address of the leader. Empty while there is none. */
      leader_address: string;
      /** @description Why there is no leader, or why etcd cannot be used. Empty when all is well. */
      problem: string;
      /** @description How long this node may still lead without renewing its lease, as `6.500s`. */
      lease_remaining?: string;
      /** @description Every node that has joined, by node id. */
      members: components['schemas']['ClusterMember'][];
      /**
       * Format: int64
       * @description Acknowledged writes that would be lost with the leader: the commits that no follower has acknowledged yet. Only on a leader with `min_acks` 0.
       */
      loss_window: number;
    };
    /** @description The schema of one collection. */
    CollectionSchema: {
      /** @description Name of the collection. */
      collection: string;
      /** @description The JSON Schema. */
      schema?: {
        [key: string]: unknown;
      };
      /**
       * @description `strict` or `warn`.
       * @enum {string}
       */
      validate: 'strict' | 'warn';
      /**
       * Format: date-time
       * @description When it was set.
       */
      updated_at?: string;
      /**
       * Format: int64
       * @description Writes that did not match since this node started: refused with `strict`, stored with `warn`.
       */
      violation_count: number;
    };
    /** @description A collection and its indexes. */
    CollectionStatus: {
      /** @description Name of the collection. */
      name: string;
      /**
       * Format: int64
       * @description How many records it has.
       */
      records: number;
      /** @description Its indexes. */
      indexes: components['schemas']['IndexStatus'][];
      /** @description How long its records live unless the insert says otherwise. Left out: unlimited. */
      default_ttl?: string;
    };
    /** @description The commit. */
    CommitTxResponse: {
      /**
       * Format: int64
       * @description Its number. The last one there is when the transaction wrote nothing.
       */
      seq: number;
      /** @description How many writes it has. */
      operations: number;
      /**
       * Format: date-time
       * @description When it was committed.
       */
      committed_at: string;
    };
    /** @description How to compact. */
    CompactBody: {
      /**
       * Format: int64
       * @description Trim the change log before this commit, even if it is within the time it is kept. 0 or left out: trim what is older than that.
       */
      trim_before_seq?: number;
      /** @description Change nothing; only tell what would come of it. */
      dry_run?: boolean;
    };
    /** @description What compacting brought. */
    CompactResponse: {
      /**
       * Format: int64
       * @description Size of the data file before, in bytes.
       */
      bytes_before: number;
      /**
       * Format: int64
       * @description Size of the data file after, in bytes.
       */
      bytes_after: number;
      /**
       * Format: int64
       * @description Oldest commit a watch can now start at.
       */
      oldest_seq: number;
      /** @description How long it took, as `1.250s`. */
      elapsed: string;
    };
    /** @description A compaction in progress: every row is copied to a new file, then compared. */
    CompactionStatus: {
      /**
       * @description What it is doing.
       * @enum {string}
       */
      stage: 'copy' | 'compare' | 'hold' | 'point';
      /**
       * Format: int64
       * @description Rows copied and rows compared.
       */
      rows: number;
      /**
       * Format: int64
       * @description How many `rows` there are to be, as counted at the start.
       */
      total_rows: number;
      /** @description How long it has taken, as `1.250s`. */
      elapsed?: string;
    };
    /** @description An index to create. */
    CreateIndexBody: {
      /** @description Dotted paths, in order. Empty with `search`. */
      fields?: string[];
      /** @description No two records may have the same values. */
      unique?: boolean;
      /** @description Leave out records without the fields. */
      sparse?: boolean;
      /**
       * @description `ci`: text without its case, for `eqi` and `startsWithi`. Empty: text as it is.
       * @enum {string}
       */
      collation?: 'ci';
      /** @description Only records that match this are in the index, and it serves queries that ask for them. */
      where?: components['schemas']['Filter'];
      /** @description A search index of the words in these fields, in place of `fields`. */
      search?: string[];
      /** @description Language of a search index, for stems and stop words: `en`, `de`, `fr` ... Empty: `none`. */
      language?: string;
      /** @description How much a word in each field of a search index counts, as `{"title": 3}`. Left out: 1. */
      weights?: {
        [key: string]: unknown;
      };
      /** @description A vector index of this field, in place of `fields`. */
      vector?: string;
      /** @description Number of dimensions of a vector index. A record with another number is refused. */
      dims?: number;
      /**
       * @description How a vector index compares. Empty: `cosine`.
       * @enum {string}
       */
      metric?: 'cosine' | 'dot' | 'l2';
      /**
       * @description How a vector index stores numbers: `float32` in four bytes, `int8` in one. Empty: `float32`.
       * @enum {string}
       */
      storage?: 'float32' | 'int8';
    };
    /** @description An index was created, or was there. */
    CreateIndexResponse: {
      /** @description The index. */
      index?: components['schemas']['IndexStatus'];
      /**
       * Format: int64
       * @description The commit that created it. 0 when it was there.
       */
      seq: number;
    };
    /** @description The start of the hour, day, week, month or year of a time, as RFC 3339 with its offset. Null for what is not a time. */
    DateTrunc: {
      /** @description Dotted path of an RFC 3339 time, or `$created_at`, `$updated_at`, `$expires_at`. */
      field: string;
      /**
       * @description Length of the interval. Weeks begin on Monday.
       * @enum {string}
       */
      unit: 'hour' | 'day' | 'week' | 'month' | 'year';
      /** @description Time zone, an IANA name such as `Europe/Zurich`. Empty: UTC. */
      zone?: string;
    };
    /** @description What was deleted. */
    DeleteByKeyResponse: {
      /** @description The record as it last was. Only with `return_record`. */
      record?: components['schemas']['Record'];
      /**
       * Format: int64
       * @description Commit that deleted it. 0 inside a transaction.
       */
      seq: number;
    };
    /** @description Which records to delete. */
    DeleteManyBody: {
      /** @description Which records. `{}` matches all. */
      filter: components['schemas']['Filter'];
      /** @description Delete at most this many records. 0 or left out: all. */
      limit?: number;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
    };
    /** @description What was deleted. */
    DeleteManyResponse: {
      /**
       * Format: int64
       * @description How many records matched.
       */
      matched: number;
      /**
       * Format: int64
       * @description How many records were deleted.
       */
      changed: number;
      /**
       * Format: int64
       * @description The last commit of this call. 0 when nothing was committed.
       */
      seq: number;
    };
    /** @description What was deleted. */
    DeleteResponse: {
      /** @description The record as it last was. Only with `return_record`. */
      record?: components['schemas']['Record'];
      /**
       * Format: int64
       * @description Commit that deleted it. 0 inside a transaction.
       */
      seq: number;
    };
    /** @description Which values of a field. */
    DistinctBody: {
      /** @description Dotted path of the field. */
      field: string;
      /** @description Which records. Left out: all. */
      filter?: components['schemas']['Filter'];
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /**
       * Format: int64
       * @description Read at this commit or later: a follower waits until it has it, to the deadline of the call (5 s if none), then answers UNAVAILABLE with REPLICA_BEHIND.
       */
      min_seq?: number;
    };
    /** @description The different values of a field. */
    DistinctResponse: {
      /** @description The values, in order, at most 100,000. An array gives its elements. */
      values: unknown[];
      /**
       * Format: int64
       * @description Commit at which the snapshot was read.
       */
      read_seq: number;
    };
    /** @description A collection was dropped. */
    DropCollectionResponse: {
      /**
       * Format: int64
       * @description How many records were deleted.
       */
      deleted: number;
      /**
       * Format: int64
       * @description The last commit of this call.
       */
      seq: number;
    };
    /** @description An index was dropped. */
    DropIndexResponse: {
      /**
       * Format: int64
       * @description The commit that dropped it.
       */
      seq: number;
    };
    /**
     * @description A condition: `{field, op, value}`, or `and`, `or`, `not` over conditions. An empty one matches all; parts given together must all hold.
     *
     *     No op matches across types: `"5"` is not `5`. Values order null, bool, number, string, array, object; strings order by code point. A missing field matches only ne, nin and exists false.
     */
    Filter: {
      /** @description Dotted path into `data`. Through an array it matches any element; a number picks one. `$id`, `$key`, `$rev`, `$created_at` and `$updated_at` are the record's own fields, times as RFC 3339. */
      field?: string;
      /**
       * @description How to compare. `in` and `nin` take a list; `between` takes `[low, high]`, both included; `exists` takes true or false; `contains` finds a part of a string or an element of an array; `prefix` is the beginning of a string; `regex` is unanchored RE2 syntax. `elemMatch` takes a condition that one element of an array meets: a filter on its fields, or operators such as `{"gte": 5}`; `all` takes a list of elements; `size` is the length of an array; `type` is null, boolean, number, text, array or object; `eqi` and `startsWithi` ignore case (lower case of NFC text), served by an index with collation `ci`.
       * @enum {string}
       */
      op?:
        | 'eq'
        | 'ne'
        | 'gt'
        | 'gte'
        | 'lt'
        | 'lte'
        | 'in'
        | 'nin'
        | 'exists'
        | 'contains'
        | 'prefix'
        | 'regex'
        | 'between'
        | 'elemMatch'
        | 'all'
        | 'size'
        | 'type'
        | 'eqi'
        | 'startsWithi';
      /** @description What to compare with: any JSON value the op takes. */
      value?: unknown;
      /** @description All of these hold. */
      and?: components['schemas']['Filter'][];
      /** @description At least one of these holds. */
      or?: components['schemas']['Filter'][];
      /** @description This does not hold. */
      not?: components['schemas']['Filter'];
    };
    /** @description What to find. */
    FindBody: {
      /** @description Which records. Left out: all. */
      filter?: components['schemas']['Filter'];
      /** @description In which order; the id is always the last tie-break. Empty: by id. */
      order_by?: components['schemas']['OrderBy'][];
      /** @description How many records at most. A REST page has 100 unless you say otherwise and 10,000 at most; on a stream (gRPC, NDJSON) 0 or left out means all. */
      limit?: number;
      /** @description How many matching records to pass over. To page, use `cursor`: it costs the same on every page. */
      skip?: number;
      /** @description `next_cursor` of the page before, with the same filter and order. */
      cursor?: string;
      /** @description Dotted paths of the fields of `data` to return. Empty: all. */
      fields?: string[];
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /**
       * Format: int64
       * @description Read at this commit or later: a follower waits until it has it, to the deadline of the call (5 s if none), then answers UNAVAILABLE with REPLICA_BEHIND.
       */
      min_seq?: number;
      /** @description Add `plan` to the answer: the index used, rows scanned, rows returned. */
      explain?: boolean;
      /** @description false: refuse with INDEX_REQUIRED what no index serves. Left out or true: read the whole collection then. */
      allow_full_scan?: boolean;
      /** @description Answer with `count` alone, without records. */
      count_only?: boolean;
      /** @description What to leave out of `data`, in place of `fields`. */
      projection?: components['schemas']['Projection'];
      /** @description Words to find, best hits first: at most 1,000. Needs a search index. REST takes a text, too. */
      search?: components['schemas']['Search'];
      /** @description The same as `skip`. */
      offset?: number;
      /** @description Joins records of other collections. REST takes one without a list, too. */
      lookup?: components['schemas']['Lookup'][];
      /** @description The nearest vectors, best first. Needs a vector index. With `search`, both lists are merged by reciprocal rank (constant 60). */
      near?: components['schemas']['Near'];
    };
    /** @description The record found. */
    FindByIdResponse: {
      /** @description The record. */
      record: components['schemas']['Record'];
    };
    /** @description The record found. */
    FindByKeyResponse: {
      /** @description The record. */
      record: components['schemas']['Record'];
    };
    /** @description A line with one record. */
    FindItemLine: {
      record: components['schemas']['Record'];
    };
    /** @description The last line, after all records. */
    FindLastLine: {
      /** @description Send it as `cursor` for the next page. Empty when there are no more records, and in all but the last message of a stream. */
      next_cursor: string;
      /**
       * Format: int64
       * @description Commit at which the snapshot was read.
       */
      read_seq: number;
      /** @description How the query was carried out. Only with `explain`, in the last message of a stream. */
      plan?: components['schemas']['QueryPlan'];
      /**
       * Format: int64
       * @description How many records match. Only with `count_only`.
       */
      count?: number;
    };
    /** @description One line of the answer. */
    FindLine:
      | components['schemas']['FindItemLine']
      | components['schemas']['FindLastLine']
      | components['schemas']['StreamError'];
    /** @description Records found: a page on REST, one batch on gRPC. */
    FindResponse: {
      /** @description The records, in order. */
      records: components['schemas']['Record'][];
      /** @description Send it as `cursor` for the next page. Empty when there are no more records, and in all but the last message of a stream. */
      next_cursor: string;
      /**
       * Format: int64
       * @description Commit at which the snapshot was read.
       */
      read_seq: number;
      /** @description How the query was carried out. Only with `explain`, in the last message of a stream. */
      plan?: components['schemas']['QueryPlan'];
      /**
       * Format: int64
       * @description How many records match. Only with `count_only`.
       */
      count?: number;
    };
    /** @description A follower as its leader sees it. */
    FollowerStatus: {
      /** @description The follower's node id. */
      follower_id: string;
      /**
       * Format: int64
       * @description Its last commit that is on its disk.
       */
      acked_seq: number;
      /**
       * Format: int64
       * @description How many commits it is behind.
       */
      lag: number;
      /**
       * Format: date-time
       * @description When its present stream began. Left out while it is not connected.
       */
      connected_at?: string;
      /**
       * Format: date-time
       * @description When it last reported.
       */
      last_ack_at?: string;
      /** @description gRPC address at which it says it is reached. */
      address: string;
    };
    /** @description A schema. */
    GetSchemaResponse: {
      /** @description The schema. */
      schema?: components['schemas']['CollectionSchema'];
    };
    /** @description A value that makes a group: one of `field`, `date_trunc` and `bucket`. */
    GroupExpression: {
      /** @description Dotted path of a field. */
      field?: string;
      /** @description Start of an interval of time. */
      date_trunc?: components['schemas']['DateTrunc'];
      /** @description Interval of values. */
      bucket?: components['schemas']['Bucket'];
      /** @description Its name in `key`. Empty: the field. */
      as?: string;
    };
    /** @description An index that would have helped slow queries. */
    IndexAdvice: {
      /** @description Name of the collection. */
      collection: string;
      /** @description Dotted paths of the index, in order. */
      fields: string[];
      /**
       * Format: int64
       * @description How many slow queries it would have served.
       */
      query_count: number;
      /**
       * Format: double
       * @description How long they took together.
       */
      total_ms: number;
      /**
       * Format: double
       * @description How long the slowest took.
       */
      max_ms: number;
      /**
       * Format: int64
       * @description How many rows they read.
       */
      rows_scanned: number;
      /**
       * Format: int64
       * @description How many rows they returned.
       */
      rows_returned: number;
      /** @description The filter and order of the last one, without values. */
      filter: string;
      /**
       * Format: date-time
       * @description When the last one ended.
       */
      last_at?: string;
      /** @description `ci` for an index of text without its case, which `eqi` and `startsWithi` need. */
      collation: string;
    };
    /** @description One index of a collection. */
    IndexStatus: {
      /** @description Its name: the fields with commas between, as in a query plan; of a search index with `search:` before. */
      name: string;
      /** @description Dotted paths it covers, in order. */
      fields: string[];
      /** @description No two records have the same values. */
      unique: boolean;
      /** @description Records without the fields are left out of it. */
      sparse: boolean;
      /**
       * @description An index is built while the database serves; queries use it once it is ready. One that cannot be built, such as a unique one over values that are not, is `failed`; the log says why.
       * @enum {string}
       */
      state: 'building' | 'ready' | 'failed';
      /** @description `ci` for an index without case. Left out: text as it is. */
      collation?: string;
      /** @description Which records it has, as the JSON of a filter. Left out: all. */
      where?: string;
      /** @description `search` or `vector`. Left out: an index of values. */
      kind?: string;
      /** @description Language of a search index. */
      language?: string;
      /** @description How much a word in each field of a search index counts. */
      weights?: {
        [key: string]: unknown;
      };
      /** @description Number of dimensions of a vector index. */
      dims?: number;
      /** @description How a vector index compares: `cosine`, `dot` or `l2`. */
      metric?: string;
      /** @description `int8` for a vector index that stores a number in one byte. Left out: in four. */
      storage?: string;
    };
    /** @description A record to insert. */
    InsertBody: {
      /** @description The body, a JSON object (`{}` is fine), to 2 MiB and 32 levels deep. */
      data: {
        [key: string]: unknown;
      };
      /** @description Id to use, a ULID. Left out: the server makes one. */
      id?: string;
      /** @description How long the record lives, as `3.5s`. Left out: the collection's default. `0s`: unlimited. */
      ttl?: string;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
    };
    /** @description The inserted record. */
    InsertResponse: {
      /** @description The record as it was stored. */
      record: components['schemas']['Record'];
    };
    /** @description A record to insert under a key. */
    InsertWithKeyBody: {
      /** @description Your key: 1 byte to 1 KiB of UTF-8 without NUL. */
      key: string;
      /** @description The body, a JSON object (`{}` is fine), to 2 MiB and 32 levels deep. */
      data: {
        [key: string]: unknown;
      };
      /** @description How long the record lives, as `3.5s`. Left out: the collection's default. `0s`: unlimited. */
      ttl?: string;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
      /** @description Id to use, a ULID. Left out: the server makes one. */
      id?: string;
    };
    /** @description The inserted record. */
    InsertWithKeyResponse: {
      /** @description The record as it was stored. */
      record: components['schemas']['Record'];
    };
    /** @description The schemas of all collections. */
    ListSchemasResponse: {
      /** @description One for each collection that has one, by name. */
      schemas: components['schemas']['CollectionSchema'][];
    };
    /** @description A left join: the documents of matching records of another collection are an array in the record's data. Reads the same snapshot; the caller's key must be allowed to read the other collection. */
    Lookup: {
      /** @description Name of the other collection. */
      from: string;
      /** @description Dotted path in the record; of an array each element. */
      local: string;
      /** @description Dotted path in records of the other collection that has the same value. Without an index on it the collection may have at most 1,000 records; more are refused with INDEX_REQUIRED. */
      foreign: string;
      /** @description Field of the record's data that gets the array. */
      as: string;
      /** @description How many matches at most. 0 or left out, and at most: 1,000. */
      limit?: number;
    };
    /** @description The records whose vector is nearest to one. */
    Near: {
      /** @description Dotted path of the field with the vector index. */
      field: string;
      /** @description As many numbers as the index has dimensions. */
      vector: number[];
      /** @description How many records. 0 or left out: 10. At most 1,000. */
      k?: number;
    };
    /** @description One step of a sort. */
    OrderBy: {
      /** @description Dotted path into `data`, or `$id`, `$key`, `$rev`, `$created_at`, `$updated_at`. In an aggregate: an accumulator's name or a group field. A missing field comes before null. */
      field: string;
      /** @description From high to low. */
      desc?: boolean;
    };
    /** @description What to leave out of documents. */
    Projection: {
      /** @description Dotted paths of the fields of `data` to leave out. */
      exclude?: string[];
    };
    /** @description How to promote. */
    PromoteBody: {
      /** @description Promote although commits of the old leader are missing here. They are lost to readers, and saved on the old leader when it returns as a follower. */
      force?: boolean;
      /**
       * Format: int64
       * @description Promote with up to this many commits missing.
       */
      max_lag?: number;
    };
    /** @description The node after the promotion. */
    PromoteResponse: {
      /**
       * @description Its role now.
       * @enum {string}
       */
      role: 'leader' | 'follower' | 'fenced';
      /**
       * Format: int64
       * @description Its epoch now.
       */
      epoch: number;
      /**
       * Format: int64
       * @description Its last commit.
       */
      seq: number;
      /**
       * Format: int64
       * @description How many commits of the old leader were missing, as far as this node knew.
       */
      lag: number;
    };
    /** @description How a query was carried out. */
    QueryPlan: {
      /** @description Name of the index used: its fields with commas between. Empty for a full scan. */
      index: string;
      /**
       * Format: int64
       * @description Rows read, from an index or the collection.
       */
      rows_scanned: number;
      /**
       * Format: int64
       * @description Rows returned.
       */
      rows_returned: number;
      /** @description True when the whole collection was read. */
      full_scan: boolean;
      /** @description True when no index gave the order. */
      sorted_in_memory: boolean;
      /**
       * Format: double
       * @description Time spent in the engine, in milliseconds.
       */
      elapsed_ms: number;
      /** @description What the answer does not show otherwise, such as texts that are indexed in part. */
      note?: string;
    };
    /** @description One record of a collection. */
    Record: {
      /** @description Id of the record, a ULID. The server makes ids that grow, so they sort by time of insert. */
      id: string;
      /** @description Your key, unique in the collection. Empty when the record was inserted without one. */
      key: string;
      /**
       * Format: int64
       * @description Revision: 1 on insert, one more with every change of this record.
       */
      rev: number;
      /** @description The body. Left out where a delete is reported without the old data. */
      data?: {
        [key: string]: unknown;
      };
      /**
       * Format: date-time
       * @description Time of insert.
       */
      created_at?: string;
      /**
       * Format: date-time
       * @description Time of the last change.
       */
      updated_at?: string;
      /**
       * Format: int64
       * @description Database-wide number of the commit that made this revision. Send it as `min_seq` to read your own write from a follower. 0 for what a transaction has not committed yet.
       */
      seq: number;
      /**
       * Format: date-time
       * @description When the record expires. Left out when it never does.
       */
      expires_at?: string;
      /**
       * Format: double
       * @description How well it matches a search. Only in the records of one.
       */
      score?: number;
      /** @description Parts of its texts with the words found in `<mark>`: a list of texts for each field. Only in the records of a search. */
      highlights?: {
        [key: string]: unknown;
      };
    };
    /** @description A schema was removed. */
    RemoveSchemaResponse: {
      /**
       * Format: int64
       * @description The commit that removed it.
       */
      seq: number;
    };
    /** @description Which collection to rename. */
    RenameCollectionBody: {
      /** @description The new name, which no collection has. */
      new_name: string;
    };
    /** @description A collection was renamed. */
    RenameCollectionResponse: {
      /**
       * Format: int64
       * @description How many records were moved.
       */
      moved: number;
      /**
       * Format: int64
       * @description The last commit of this call.
       */
      seq: number;
    };
    /** @description A node's role, position and followers. */
    ReplicationStatusResponse: {
      /**
       * @description What the node is. Only a leader takes writes; a fenced node has met a newer leader.
       * @enum {string}
       */
      role: 'leader' | 'follower' | 'fenced';
      /**
       * Format: int64
       * @description Its epoch: one more with every promotion.
       */
      epoch: number;
      /**
       * Format: int64
       * @description Its last commit.
       */
      seq: number;
      /**
       * Format: int64
       * @description Its last commit that is on disk.
       */
      durable_seq: number;
      /**
       * Format: int64
       * @description Oldest commit a watch can start at.
       */
      oldest_seq: number;
      /** @description Id of the history the database belongs to. */
      lineage_id: string;
      /** @description Where the leader is, as far as known. Empty on the leader. */
      leader_address: string;
      /**
       * Format: int64
       * @description The leader's last commit, as last heard.
       */
      leader_seq: number;
      /**
       * Format: int64
       * @description How many commits this node is behind the leader.
       */
      lag: number;
      /** @description How far this node is behind the leader in time, as `0.250s`. */
      lag_time?: string;
      /**
       * @description What the node is doing.
       * @enum {string}
       */
      state:
        | 'leading'
        | 'bootstrapping'
        | 'streaming'
        | 'disconnected'
        | 'diverged'
        | 'fenced'
        | 'suspended'
        | 'electing';
      /** @description The followers that have contacted this leader. */
      followers: components['schemas']['FollowerStatus'][];
      /**
       * @description `full`: an answered write is on disk. `relaxed`: the last moments may be lost in a crash.
       * @enum {string}
       */
      durability: 'full' | 'relaxed';
      /** @description Id of the node, made once for its data directory. */
      node_id: string;
      /** @description Version of the server. */
      version: string;
      /** @description How many followers must have a write on disk before it is answered. */
      min_acks: number;
      /** @description Commits that were set aside because the leader's history went another way. */
      saved_tails: components['schemas']['SavedTail'][];
      /** @description The collections, by name. Only with `include_collections`. */
      collections: components['schemas']['CollectionStatus'][];
      /**
       * @description `keys`: gRPC and REST need an API key. `none`: every local user has full access.
       * @enum {string}
       */
      auth: 'keys' | 'none';
      /** @description The cluster it belongs to, whose leader etcd decides. Absent without one. */
      cluster?: components['schemas']['ClusterStatus'];
      /** @description The compaction that runs now. Absent without one. */
      compaction?: components['schemas']['CompactionStatus'];
    };
    /** @description The transaction is gone. */
    RollbackTxResponse: Record<string, never>;
    /** @description Commits that were never part of the new leader's history, kept in a file. */
    SavedTail: {
      /** @description Name of the file in the data directory. */
      file: string;
      /**
       * Format: int64
       * @description First commit in it.
       */
      first_seq: number;
      /**
       * Format: int64
       * @description Last commit in it.
       */
      last_seq: number;
      /**
       * Format: int64
       * @description Epoch in which they were committed.
       */
      epoch: number;
      /**
       * Format: date-time
       * @description When they were set aside.
       */
      saved_at?: string;
    };
    /** @description A record that does not match a schema. */
    SchemaViolation: {
      /** @description Id of the record. */
      id: string;
      /** @description Its key. Empty when it has none. */
      key: string;
      /** @description Dotted path of the first field that does not match. Empty: the document as a whole. */
      path: string;
      /** @description What is wrong with it. */
      message: string;
    };
    /** @description Words to find in the texts of records. */
    Search: {
      /** @description Words, `"phrases"`, `pre*` for what begins so, and `-words` that must not be there. */
      text: string;
      /**
       * @description `all`: every word must be there. `any`: at least one. Empty: `all`.
       * @enum {string}
       */
      mode?: 'all' | 'any';
      /** @description Also find words of five letters and more with one typing mistake. */
      fuzzy?: boolean;
      /** @description false: without `highlights`. Left out or true: with them. */
      highlight?: boolean;
      /** @description Only these fields of the index. Empty: all of them. */
      fields?: string[];
    };
    /** @description A schema to set. */
    SetSchemaBody: {
      /** @description The JSON Schema (2020-12). */
      schema: {
        [key: string]: unknown;
      };
      /**
       * @description What happens to a write that does not match: `strict` refuses it, `warn` stores, logs and counts it. Empty: `strict`.
       * @enum {string}
       */
      validate?: 'strict' | 'warn';
      /** @description Set the schema although existing records do not match it. */
      force?: boolean;
    };
    /** @description What came of setting a schema. */
    SetSchemaResponse: {
      /** @description False: existing records do not match, and nothing was changed. */
      applied: boolean;
      /**
       * Format: int64
       * @description How many records were checked.
       */
      checked: number;
      /**
       * Format: int64
       * @description How many of them do not match.
       */
      violating: number;
      /** @description The first 20 of them. */
      violations: components['schemas']['SchemaViolation'][];
      /**
       * Format: int64
       * @description The commit that set the schema. 0 when nothing was changed.
       */
      seq: number;
    };
    /** @description A change of a record, by id. */
    UpdateBody: {
      /** @description The new body, or what to merge into it. The result may have 2 MiB and 32 levels. */
      data?: {
        [key: string]: unknown;
      };
      /** @description Replace or merge. */
      mode?: components['schemas']['UpdateMode'];
      /** @description How long the record lives from now, as `3.5s`. Left out: its expiry stays. `0s`: unlimited. */
      ttl?: string;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
      /** @description Operators to apply to the record, in place of `data`: `{"$inc": {"n": 1}}`. `$set`, `$unset`, `$inc`, `$mul`, `$min`, `$max`, `$push`, `$addToSet`, `$pull`, `$rename`, `$currentDate`, each with paths and values; no two write the same path. */
      update?: {
        [key: string]: unknown;
      };
    };
    /** @description A change of a record, by key. */
    UpdateByKeyBody: {
      /** @description The new body, or what to merge into it. The result may have 2 MiB and 32 levels. */
      data?: {
        [key: string]: unknown;
      };
      /** @description Replace or merge. */
      mode?: components['schemas']['UpdateMode'];
      /** @description How long the record lives from now, as `3.5s`. Left out: its expiry stays. `0s`: unlimited. */
      ttl?: string;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
      /** @description Operators to apply to the record, in place of `data`: `{"$inc": {"n": 1}}`. `$set`, `$unset`, `$inc`, `$mul`, `$min`, `$max`, `$push`, `$addToSet`, `$pull`, `$rename`, `$currentDate`, each with paths and values; no two write the same path. */
      update?: {
        [key: string]: unknown;
      };
    };
    /** @description The changed record. */
    UpdateByKeyResponse: {
      /** @description The record after the change. */
      record: components['schemas']['Record'];
    };
    /** @description A change that holds only for one revision. Send `key` or `id`, not both; an id also guards against a record that was deleted and inserted again under the same key. */
    UpdateIfRevBody: {
      /**
       * Format: int64
       * @description Revision the record must have. 0, also when left out: it must not exist (by key only).
       */
      expected_rev?: number;
      /** @description The new body, or what to merge into it. The result may have 2 MiB and 32 levels. */
      data?: {
        [key: string]: unknown;
      };
      /** @description Replace (unless you say otherwise) or merge. */
      mode?: components['schemas']['UpdateMode'];
      /** @description How long the record lives from now, as `3.5s`. Left out: its expiry stays, and a new record has the collection's default. `0s`: unlimited. */
      ttl?: string;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
      /** @description Operators to apply to the record, in place of `data`: `{"$inc": {"n": 1}}`. `$set`, `$unset`, `$inc`, `$mul`, `$min`, `$max`, `$push`, `$addToSet`, `$pull`, `$rename`, `$currentDate`, each with paths and values; no two write the same path. */
      update?: {
        [key: string]: unknown;
      };
    };
    /** @description The changed record. */
    UpdateIfRevResponse: {
      /** @description The record after the change. */
      record: components['schemas']['Record'];
    };
    /** @description A patch for every record that matches. */
    UpdateManyBody: {
      /** @description Which records. `{}` matches all. */
      filter: components['schemas']['Filter'];
      /** @description Merged into each record as RFC 7396 says (null removes a field). */
      patch?: {
        [key: string]: unknown;
      };
      /** @description Change at most this many records. 0 or left out: all. */
      limit?: number;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
      /** @description Operators to apply to the record, in place of `patch`: `{"$inc": {"n": 1}}`. `$set`, `$unset`, `$inc`, `$mul`, `$min`, `$max`, `$push`, `$addToSet`, `$pull`, `$rename`, `$currentDate`, each with paths and values; no two write the same path. */
      update?: {
        [key: string]: unknown;
      };
    };
    /** @description What the patch did. */
    UpdateManyResponse: {
      /**
       * Format: int64
       * @description How many records matched.
       */
      matched: number;
      /**
       * Format: int64
       * @description How many records changed.
       */
      changed: number;
      /**
       * Format: int64
       * @description The last commit of this call. 0 when nothing was committed.
       */
      seq: number;
    };
    /**
     * @description What a write does with the data that is there.
     *
     *     - `REPLACE`: The new data takes the place of the old.
     *     - `MERGE`: The new data is merged into the old as RFC 7396 says; null removes a field.
     *
     *     The long spelling (`UPDATE_MODE_REPLACE`) is taken too.
     * @enum {string}
     */
    UpdateMode: 'REPLACE' | 'MERGE' | 'UPDATE_MODE_REPLACE' | 'UPDATE_MODE_MERGE';
    /** @description The changed record. */
    UpdateResponse: {
      /** @description The record after the change. */
      record: components['schemas']['Record'];
    };
    /** @description A record to insert or change, by key. */
    UpsertBody: {
      /** @description The body, or what to merge into it. The result may have 2 MiB and 32 levels. */
      data?: {
        [key: string]: unknown;
      };
      /** @description Replace (unless you say otherwise) or merge, when the record exists. */
      mode?: components['schemas']['UpdateMode'];
      /** @description How long the record lives from now, as `3.5s`. Left out: its expiry stays, and a new record has the collection's default. `0s`: unlimited. */
      ttl?: string;
      /** @description Transaction this belongs to. */
      tx_id?: string;
      /** @description Any text you make up once for this write. Sent again within 10 minutes, the same request is not carried out twice but gets the same answer. */
      request_id?: string;
      /** @description Operators to apply to the record, in place of `data`: `{"$inc": {"n": 1}}`. `$set`, `$unset`, `$inc`, `$mul`, `$min`, `$max`, `$push`, `$addToSet`, `$pull`, `$rename`, `$currentDate`, each with paths and values; no two write the same path. */
      update?: {
        [key: string]: unknown;
      };
    };
    /** @description The record written. */
    UpsertResponse: {
      /** @description The record after the write. */
      record: components['schemas']['Record'];
      /** @description True when the record was inserted, false when it was there. */
      created: boolean;
    };
    /** @description What to follow. */
    WatchBody: {
      /** @description Which records. A change is delivered when the record matched before it or matches after it. */
      filter?: components['schemas']['Filter'];
      /** @description Continue after this position, as an earlier message gave it. Not together with `start_seq`. */
      resume_token?: string;
      /**
       * Format: int64
       * @description First commit wanted. 0 or left out: from now on.
       */
      start_seq?: number;
      /** @description First the records that match now (INITIAL), then INITIAL_END, then the changes, without gap. */
      include_initial?: boolean;
      /** @description Tell each record as it was before the change, too. */
      include_before?: boolean;
      /** @description How often a quiet stream gets a BOOKMARK, as `15s`. Left out: every 15 s. */
      heartbeat?: string;
      /** @description Dotted paths of the fields of `data` to return. Empty: all. */
      fields?: string[];
    };
    /**
     * @description What a message of a watch is.
     *
     *     - `WATCH_KIND_CHANGES`: The changes of one or more commits.
     *     - `WATCH_KIND_INITIAL`: Records that match at the start, each delivered as an insert.
     *     - `WATCH_KIND_INITIAL_END`: All records of the start have been delivered; changes follow.
     *     - `WATCH_KIND_BOOKMARK`: Nothing new for you up to `seq`; keep its resume token.
     * @enum {string}
     */
    WatchKind:
      | 'WATCH_KIND_CHANGES'
      | 'WATCH_KIND_INITIAL'
      | 'WATCH_KIND_INITIAL_END'
      | 'WATCH_KIND_BOOKMARK';
    /** @description One line of the answer. */
    WatchLine: components['schemas']['WatchResponse'] | components['schemas']['StreamError'];
    /** @description One message of a watch. A commit is never split over two messages, so one can be larger than 4 MiB: let your gRPC client receive 64 MiB. */
    WatchResponse: {
      /** @description What this message is. */
      kind: components['schemas']['WatchKind'];
      /**
       * Format: int64
       * @description Last commit this message covers.
       */
      seq: number;
      /**
       * Format: int64
       * @description Epoch of the leader that committed it.
       */
      epoch: number;
      /**
       * Format: date-time
       * @description When it was committed.
       */
      committed_at?: string;
      /** @description The changes, in commit order. */
      changes: components['schemas']['Change'][];
      /** @description Send it back to continue after this message. */
      resume_token: string;
      /**
       * Format: int64
       * @description Last commit of the database when this was sent: `leader_seq - seq` is how far you are behind.
       */
      leader_seq: number;
    };
    /** @description Health of the server. */
    Health: {
      /**
       * @description `ok` (alive), `ready` or `not_ready`.
       * @enum {string}
       */
      status: 'ok' | 'ready' | 'not_ready';
      /** @description What was looked at: `ok`, or what is wrong. */
      checks?: {
        [key: string]: string;
      };
    };
    /** @description A `google.rpc.Status`. */
    Error: {
      /** @description The gRPC code as a number. */
      code: number;
      /** @description What went wrong, for people. */
      message: string;
      /** @description What went wrong, for programs. The ErrorInfo comes first. */
      details: (
        | components['schemas']['ErrorInfo']
        | components['schemas']['RetryInfo']
        | components['schemas']['BadRequest']
      )[];
    };
    /** @description Why the call was refused. */
    ErrorInfo: {
      /**
       * @description Type of the detail.
       * @constant
       */
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo';
      reason: components['schemas']['Reason'];
      /**
       * @description Always `millrace.db`.
       * @constant
       */
      domain: 'millrace.db';
      /** @description What the reason is about; `x-error-codes` lists the names for each. */
      metadata?: {
        [key: string]: string;
      };
    };
    /** @description When to try again. */
    RetryInfo: {
      /**
       * @description Type of the detail.
       * @constant
       */
      '@type': 'type.googleapis.com/google.rpc.RetryInfo';
      /** @description How long to wait, as `0.250s`. */
      retry_delay: string;
    };
    /** @description Which fields were wrong. */
    BadRequest: {
      /**
       * @description Type of the detail.
       * @constant
       */
      '@type': 'type.googleapis.com/google.rpc.BadRequest';
      /** @description One entry for each field. */
      field_violations: components['schemas']['FieldViolation'][];
    };
    /** @description One field that was wrong. */
    FieldViolation: {
      /** @description Dotted path of the field. */
      field: string;
      /** @description What is wrong with it, and what it should be. */
      description: string;
    };
    /** @description The last line of an answer that failed after it had begun. */
    StreamError: {
      error: components['schemas']['Error'];
    };
    /**
     * @description Why the call was refused, one of a closed list.
     * @enum {string}
     */
    Reason:
      | 'BAD_REQUEST'
      | 'REQUEST_TOO_LARGE'
      | 'UNSUPPORTED_MEDIA_TYPE'
      | 'BAD_COLLECTION'
      | 'BAD_KEY'
      | 'BAD_ID'
      | 'BAD_DATA'
      | 'BAD_UPDATE'
      | 'TYPE_MISMATCH'
      | 'SCHEMA_VIOLATION'
      | 'BAD_SCHEMA'
      | 'RECORD_TOO_LARGE'
      | 'BAD_FILTER'
      | 'BAD_CURSOR'
      | 'BAD_RESUME_TOKEN'
      | 'REQUEST_ID_REUSED'
      | 'MISSING_KEY'
      | 'UNKNOWN_KEY'
      | 'EXPIRED_KEY'
      | 'SCOPE'
      | 'RECORD_NOT_FOUND'
      | 'KEY_NOT_FOUND'
      | 'COLLECTION_NOT_FOUND'
      | 'COLLECTION_EXISTS'
      | 'DECLARED_IN_SETTINGS'
      | 'INDEX_NOT_FOUND'
      | 'SCHEMA_NOT_FOUND'
      | 'DUPLICATE_KEY'
      | 'DUPLICATE_ID'
      | 'UNIQUE_VIOLATION'
      | 'REV_MISMATCH'
      | 'INDEX_REQUIRED'
      | 'CURSOR_EXPIRED'
      | 'WATCH_COMPACTED'
      | 'GROUP_LIMIT'
      | 'TX_NOT_FOUND'
      | 'TX_EXPIRED'
      | 'TX_CONFLICT'
      | 'TX_CLOSED'
      | 'TX_READ_ONLY'
      | 'TX_LIMIT'
      | 'READ_ONLY_REPLICA'
      | 'NOT_LEADER'
      | 'FENCED'
      | 'DIVERGED'
      | 'LINEAGE_MISMATCH'
      | 'REPLICA_LAG'
      | 'REPLICA_BEHIND'
      | 'NOT_ENOUGH_ACKS'
      | 'OVERLOADED'
      | 'RATE_LIMITED'
      | 'WATCH_LIMIT'
      | 'DISK_FULL'
      | 'STORAGE_FAILED'
      | 'ALREADY_RUNNING'
      | 'NOT_READY'
      | 'CONNECTION_LIMIT'
      | 'SHUTTING_DOWN'
      | 'DEADLINE_EXCEEDED'
      | 'CANCELLED'
      | 'CORRUPT'
      | 'INTERNAL'
      | 'NO_SUCH_ROUTE'
      | 'NO_SUCH_METHOD';
  };
  responses: never;
  parameters: never;
  requestBodies: never;
  headers: never;
  pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
