import type { OpenApiDocument } from '../../src/http/index.js';

/** A small API with one of everything that the glue has to cope with. */

const problem = (description: string) => ({
  description,
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
});
const json = (name: string) => ({
  description: name,
  content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
});
const body = (name: string, required = true) => ({
  required,
  content: { 'application/json': { schema: { $ref: `#/components/schemas/${name}` } } },
});
const usual = ['UNAUTHENTICATED', 'FORBIDDEN', 'INTERNAL'];
const defaultResponses = {
  401: problem('No token'),
  403: problem('No grant'),
  500: problem('A bug'),
};
const writing = ['PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE'];
const writingResponses = { 413: problem('Too large'), 415: problem('Not JSON') };
const notFound = { 404: problem('Not found') };
const invalid = { 422: problem('Invalid') };
const queueParameter = { $ref: '#/components/parameters/Queue' };

export const sampleDocument: OpenApiDocument = {
  openapi: '3.1.0',
  security: [{ bearer: [] }],
  paths: {
    '/v1/queues/{queue}/tasks': {
      parameters: [queueParameter],
      post: {
        operationId: 'submitTask',
        'x-min-role': 'submitter',
        'x-invalid-code': 'INVALID_TASK',
        'x-body-limit-bytes': 2048,
        'x-allow-unknown-query': true,
        'x-codes': [...usual, ...writing, 'QUEUE_NOT_FOUND', 'INVALID_TASK', 'BUSY'],
        requestBody: body('TaskRequest'),
        responses: {
          202: json('Task'),
          ...defaultResponses,
          ...notFound,
          ...writingResponses,
          ...invalid,
          503: problem('Busy'),
        },
      },
    },
    '/v1/queues/{queue}/tasks:batch': {
      parameters: [queueParameter],
      post: {
        operationId: 'submitBatch',
        'x-min-role': 'submitter',
        'x-invalid-code': 'INVALID_TASK',
        'x-codes': [...usual, ...writing, 'QUEUE_NOT_FOUND', 'INVALID_TASK'],
        requestBody: body('TaskList'),
        responses: {
          207: json('Results'),
          ...defaultResponses,
          ...notFound,
          ...writingResponses,
          ...invalid,
        },
      },
    },
    '/v1/queues/{queue}/dlq': {
      parameters: [queueParameter],
      get: {
        operationId: 'listDlq',
        'x-min-role': 'operator',
        'x-codes': [...usual, 'QUEUE_NOT_FOUND', 'INVALID_QUERY'],
        parameters: [
          {
            name: 'limit',
            in: 'query',
            schema: { type: 'integer', minimum: 1, default: 50, 'x-clamp-max': 500 },
          },
          { name: 'from', in: 'query', schema: { type: 'string', format: 'date-time' } },
          { name: 'newest_first', in: 'query', schema: { type: 'boolean' } },
          { name: 'ratio', in: 'query', schema: { type: 'number' } },
          {
            name: 'status',
            in: 'query',
            schema: { type: 'array', items: { enum: ['DEAD', 'PENDING'] }, maxItems: 2 },
          },
          {
            name: 'attempts',
            in: 'query',
            explode: false,
            schema: { type: 'array', items: { type: 'integer' } },
          },
        ],
        responses: { 200: json('Echo'), ...defaultResponses, ...notFound, ...invalid },
      },
    },
    '/v1/tasks/{id}': {
      parameters: [{ $ref: '#/components/parameters/TaskId' }],
      get: {
        operationId: 'getTask',
        'x-min-role': 'submitter',
        'x-codes': [...usual, 'TASK_NOT_FOUND', 'INVALID_QUERY'],
        responses: { 200: json('Echo'), ...defaultResponses, ...notFound, ...invalid },
      },
    },
    '/v1/tasks/{id}:complete': {
      parameters: [
        { $ref: '#/components/parameters/TaskId' },
        {
          name: 'X-Lease-Token',
          in: 'header',
          required: true,
          schema: { type: 'string', minLength: 1, maxLength: 16 },
        },
      ],
      post: {
        operationId: 'completeTask',
        'x-min-role': 'submitter',
        'x-invalid-code': 'INVALID_TASK',
        'x-allow-unknown-query': true,
        'x-codes': [...usual, ...writing, 'TASK_NOT_FOUND', 'INVALID_TASK'],
        requestBody: body('Completion', false),
        responses: {
          200: json('Echo'),
          ...defaultResponses,
          ...notFound,
          ...writingResponses,
          ...invalid,
        },
      },
    },
    '/v1/admin/queues/{queue}': {
      parameters: [queueParameter],
      get: {
        operationId: 'getQueue',
        'x-min-role': 'admin',
        'x-codes': [...usual, 'QUEUE_NOT_FOUND', 'INVALID_QUERY'],
        responses: { 200: json('Echo'), ...defaultResponses, ...notFound, ...invalid },
      },
      delete: {
        operationId: 'deleteQueue',
        'x-min-role': 'admin',
        'x-codes': [...usual, 'QUEUE_NOT_FOUND', 'INVALID_QUERY'],
        responses: { 204: { description: 'Gone' }, ...defaultResponses, ...notFound, ...invalid },
      },
    },
    '/v1/admin/queues/{queue}:pause': {
      parameters: [queueParameter],
      post: {
        operationId: 'pauseQueue',
        'x-min-role': 'operator',
        'x-allow-unknown-query': true,
        'x-codes': [...usual, 'QUEUE_NOT_FOUND'],
        responses: { 204: { description: 'Paused' }, ...defaultResponses, ...notFound },
      },
    },
    '/v1/admin/queues/{queue}:resume': {
      parameters: [queueParameter],
      post: {
        operationId: 'resumeQueue',
        'x-min-role': 'operator',
        'x-allow-unknown-query': true,
        'x-codes': [...usual, 'QUEUE_NOT_FOUND'],
        responses: { 204: { description: 'Resumed' }, ...defaultResponses, ...notFound },
      },
    },
    '/v1/admin/queues/{queue}/config': {
      parameters: [{ $ref: '#/components/parameters/Queue', 'x-note': 'same' }],
      put: {
        operationId: 'putConfig',
        'x-min-role': 'admin',
        'x-invalid-code': 'INVALID_CONFIG',
        'x-allow-unknown-query': true,
        'x-codes': [...usual, ...writing, 'QUEUE_NOT_FOUND', 'INVALID_CONFIG'],
        requestBody: body('QueueConfig'),
        responses: {
          200: json('Echo'),
          ...defaultResponses,
          ...notFound,
          ...writingResponses,
          ...invalid,
        },
      },
    },
    '/v1/callback': {
      post: {
        operationId: 'takeCallback',
        'x-min-role': 'submitter',
        'x-invalid-code': 'INVALID_TASK',
        'x-raw-body': true,
        'x-body-limit-bytes': 64,
        'x-allow-unknown-query': true,
        'x-codes': [...usual, 'PAYLOAD_TOO_LARGE', 'INVALID_TASK'],
        requestBody: { content: { '*/*': { schema: { type: 'string' } } } },
        responses: {
          200: json('Echo'),
          ...defaultResponses,
          413: problem('Too large'),
          ...invalid,
        },
      },
    },
    '/v1/events': {
      get: {
        operationId: 'watchEvents',
        'x-min-role': 'submitter',
        'x-allow-unknown-query': true,
        'x-codes': usual,
        responses: {
          200: {
            description: 'Events',
            content: { 'text/event-stream': { schema: { type: 'string' } } },
          },
          ...defaultResponses,
        },
      },
    },
    '/healthz': {
      get: {
        operationId: 'getHealth',
        security: [],
        'x-allow-unknown-query': true,
        'x-codes': ['INTERNAL'],
        responses: { 200: json('Echo'), 500: problem('A bug') },
      },
    },
  },
  components: {
    parameters: {
      Queue: {
        name: 'queue',
        in: 'path',
        required: true,
        'x-invalid-code': 'QUEUE_NOT_FOUND',
        schema: { $ref: '#/components/schemas/QueueName' },
      },
      TaskId: {
        name: 'id',
        in: 'path',
        required: true,
        'x-invalid-code': 'TASK_NOT_FOUND',
        schema: { type: 'string', pattern: '^[A-Za-z0-9]+$' },
      },
    },
    schemas: {
      QueueName: { type: 'string', pattern: '^[a-z0-9][a-z0-9._-]{0,127}$' },
      TaskRequest: {
        type: 'object',
        additionalProperties: false,
        required: ['handler_ref'],
        'x-additive': true,
        properties: {
          handler_ref: { type: 'string', minLength: 1, maxLength: 32 },
          payload: { type: 'string', format: 'byte' },
          priority: { $ref: '#/components/schemas/Priority' },
          run_at: { type: ['string', 'null'], format: 'date-time' },
          headers: {
            type: 'object',
            maxProperties: 2,
            propertyNames: { pattern: '^[A-Za-z-]+$' },
            additionalProperties: { type: 'string' },
          },
          retry_after_ms: { type: 'integer', minimum: 0, 'x-clamp-max': 3600000 },
        },
        dependentSchemas: { run_at: { properties: { retry_after_ms: false } } },
      },
      Priority: { type: 'integer', minimum: 0, maximum: 9, default: 4 },
      TaskList: { type: 'array', maxItems: 3, items: { $ref: '#/components/schemas/TaskRequest' } },
      Completion: {
        type: 'object',
        additionalProperties: false,
        properties: { note: { type: 'string' } },
      },
      QueueConfig: {
        type: 'object',
        additionalProperties: false,
        required: ['callback'],
        properties: {
          callback: {
            type: 'object',
            additionalProperties: false,
            required: ['url'],
            properties: {
              url: { type: 'string', format: 'uri' },
              auth: {
                oneOf: [
                  { $ref: '#/components/schemas/NoAuth' },
                  { $ref: '#/components/schemas/BearerAuth' },
                  { $ref: '#/components/schemas/HeaderAuth' },
                ],
              },
            },
          },
          retry: {
            type: 'object',
            additionalProperties: false,
            default: {},
            properties: {
              max_attempts: { type: 'integer', minimum: 1, maximum: 100, default: 15 },
              multiplier: { type: 'number', exclusiveMinimum: 0, default: 2 },
            },
          },
          mode: { enum: ['none', 'group', 'strict'], default: 'none' },
          label: { anyOf: [{ type: 'string', maxLength: 4 }, { type: 'null' }] },
          since: {
            anyOf: [
              { type: 'string', pattern: '^[1-9][hd]$', examples: ['1h', '7d'] },
              { type: 'string', format: 'date-time' },
            ],
          },
          selector: { $ref: '#/components/schemas/Selector' },
          statuses: { type: 'array', uniqueItems: true, minItems: 1, items: { type: 'integer' } },
        },
      },
      NoAuth: {
        type: 'object',
        additionalProperties: false,
        required: ['type'],
        properties: { type: { const: 'none' } },
      },
      BearerAuth: {
        type: 'object',
        additionalProperties: false,
        required: ['type', 'secret_ref'],
        properties: { type: { const: 'bearer' }, secret_ref: { type: 'string' } },
      },
      HeaderAuth: {
        type: 'object',
        additionalProperties: false,
        required: ['type', 'name', 'secret_ref'],
        properties: {
          type: { const: 'header' },
          name: { type: 'string' },
          secret_ref: { type: 'string' },
        },
      },
      Selector: {
        type: 'object',
        additionalProperties: false,
        properties: {
          ids: { type: 'array', items: { type: 'string' } },
          filter: { type: 'object' },
        },
        oneOf: [{ required: ['ids'] }, { required: ['filter'] }],
      },
      Task: {
        type: 'object',
        required: ['id', 'queue'],
        properties: { id: { type: 'string' }, queue: { type: 'string' } },
      },
      Results: { type: 'array', items: { type: 'object' } },
      Echo: { type: 'object' },
      Problem: {
        type: 'object',
        required: ['type', 'title', 'status', 'detail', 'instance', 'code'],
        properties: { code: { $ref: '#/components/schemas/ErrorCode' } },
      },
      ErrorCode: {
        enum: [
          'UNAUTHENTICATED',
          'FORBIDDEN',
          'NOT_FOUND',
          'QUEUE_NOT_FOUND',
          'TASK_NOT_FOUND',
          'METHOD_NOT_ALLOWED',
          'PAYLOAD_TOO_LARGE',
          'UNSUPPORTED_MEDIA_TYPE',
          'INVALID_TASK',
          'INVALID_CONFIG',
          'INVALID_QUERY',
          'INTERNAL',
          'BUSY',
        ],
      },
    },
  } as NonNullable<OpenApiDocument['components']>,
  'x-error-codes': {
    UNAUTHENTICATED: { status: 401, title: 'Unauthenticated' },
    FORBIDDEN: { status: 403, title: 'Forbidden' },
    NOT_FOUND: { status: 404, title: 'Not found' },
    QUEUE_NOT_FOUND: { status: 404, title: 'Queue not found' },
    TASK_NOT_FOUND: { status: 404, title: 'Task not found' },
    METHOD_NOT_ALLOWED: { status: 405, title: 'Method not allowed' },
    PAYLOAD_TOO_LARGE: { status: 413, title: 'Payload too large' },
    UNSUPPORTED_MEDIA_TYPE: { status: 415, title: 'Unsupported media type' },
    INVALID_TASK: { status: 422, title: 'Invalid task' },
    INVALID_CONFIG: { status: 422, title: 'Invalid config' },
    INVALID_QUERY: { status: 422, title: 'Invalid query' },
    INTERNAL: { status: 500, title: 'Internal error' },
    BUSY: { status: 503, title: 'Busy' },
  },
};
