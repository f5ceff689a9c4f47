/** Error responses of the database's OpenAPI document, from the closed list of reasons. */

const responseNames = {
  400: ['BadRequest', 'The request cannot be carried out as it is.'],
  401: ['Unauthenticated', 'The API key is missing or not good.'],
  403: ['Forbidden', 'The API key does not allow this.'],
  404: ['NotFound', 'What the request names is not there.'],
  409: ['Conflict', 'Something else is there, or came first.'],
  415: ['UnsupportedMediaType', 'The body has a media type that is not supported.'],
  422: ['Unprocessable', 'The update cannot be applied.'],
  429: ['TooManyRequests', 'A limit was reached.'],
  499: ['ClientClosedRequest', 'The caller gave the call up.'],
  500: ['InternalError', 'The server failed.'],
  503: ['Unavailable', 'The server cannot do this now; try again.'],
  504: ['DeadlineExceeded', 'It took longer than the caller would wait.'],
};

/** Statuses whose answer may say when to try again. */
const retryable = ['429', '503'];

/** What the metadata of an example shows. */
const sampleMetadata = {
  access: 'write',
  acks: '0',
  collection: 'people',
  current_rev: '4',
  diverged_after_seq: '1180',
  epoch: '3',
  id: '01JCZ8Q4V7W3S1N6K2M5T9X0AB',
  index: 'email',
  key: 'ada',
  lag: '12',
  leader: 'grpc://10.0.0.2:5433',
  limit: '100000',
  limit_bytes: '2097152',
  lineage_id: '01JCZ8P0000000000000000000',
  min_acks: '1',
  min_seq: '1200',
  oldest_seq: '950',
  path: 'address.city',
  request_id: 'import-7',
  seq: '1188',
  tx_id: '01JCZ8R1B2C3D4E5F6G7H8J9K0',
};
const ownMetadata = {
  REQUEST_TOO_LARGE: { limit_bytes: '4194304' },
  WATCH_LIMIT: { limit: '256' },
};

/** The reasons one method may give, and the responses that show them. */
export function reasonsOf(method, dbReasons) {
  const mine = Object.entries(dbReasons).filter(
    ([, entry]) =>
      entry.methods === 'any' || (Array.isArray(entry.methods) && entry.methods.includes(method)),
  );
  const statuses = [...new Set(mine.map(([, entry]) => entry.status))].toSorted((a, b) => a - b);
  return {
    codes: mine.map(([reason]) => reason),
    responses: Object.fromEntries(
      statuses.map((status) => [
        status,
        { $ref: `#/components/responses/${responseNames[status][0]}` },
      ]),
    ),
  };
}

export function errorResponses({ dbReasons, grpcCodes, dbErrorDomain }) {
  const responses = {};
  for (const [status, [name, description]] of Object.entries(responseNames)) {
    const mine = Object.entries(dbReasons).filter(([, entry]) => entry.status === Number(status));
    if (mine.length === 0) throw new Error(`no reason has status ${status}`);
    responses[name] = {
      description,
      ...(retryable.includes(status)
        ? { headers: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } } }
        : {}),
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/Error' },
          examples: Object.fromEntries(
            mine.map(([reason, entry]) => [
              reason,
              { value: errorExample(reason, entry, { grpcCodes, dbErrorDomain }) },
            ]),
          ),
        },
      },
    };
  }
  return {
    responses,
    schema: {
      type: 'string',
      description: 'Why the call was refused, one of a closed list.',
      enum: Object.keys(dbReasons),
    },
    codes: Object.fromEntries(
      Object.entries(dbReasons).map(([reason, entry]) => [
        reason,
        {
          status: entry.status,
          grpc_code: entry.code,
          description: entry.meaning,
          ...(entry.metadata ? { metadata: entry.metadata } : {}),
        },
      ]),
    ),
  };
}

function errorExample(reason, entry, { grpcCodes, dbErrorDomain }) {
  const metadata = (entry.metadata ?? []).map((name) => {
    if (!(name in sampleMetadata)) throw new Error(`no sample for the metadata ${name}`);
    return [name, ownMetadata[reason]?.[name] ?? sampleMetadata[name]];
  });
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason,
    domain: dbErrorDomain,
    ...(metadata.length > 0 ? { metadata: Object.fromEntries(metadata) } : {}),
  };
  return { code: grpcCodes[entry.code], message: entry.meaning, details: [info, ...more(reason)] };
}

function more(reason) {
  if (reason === 'OVERLOADED' || reason === 'RATE_LIMITED') {
    return [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retry_delay: '0.250s' }];
  }
  if (reason === 'BAD_REQUEST') {
    const violation = { field: 'limit', description: 'limit must be a whole number, 0 or more' };
    return [
      { '@type': 'type.googleapis.com/google.rpc.BadRequest', field_violations: [violation] },
    ];
  }
  return [];
}
