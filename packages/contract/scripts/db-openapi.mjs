/** The OpenAPI document of the database's REST bridge, from its proto and its reasons. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { examples } from './db-examples.mjs';
import { errorResponses, reasonsOf } from './db-errors.mjs';
import { schemaCollector } from './db-schemas.mjs';
import { textOf } from './proto-model.mjs';

const baseFile = new URL('./db.base.openapi.yaml', import.meta.url);

export function buildDocument(model, { dbReasons, grpcCodes, dbErrorDomain }) {
  const base = parse(readFileSync(baseFile, 'utf8'));
  const collector = schemaCollector(model);
  const paths = {};
  const unused = new Set(Object.keys(examples));
  for (const method of model.methods) {
    for (const binding of method.bindings) {
      unused.delete(binding.operationId);
      paths[binding.path] ??= {};
      paths[binding.path][binding.verb] = operation(method, binding, {
        collector,
        dbReasons,
        model,
      });
    }
  }
  if (unused.size > 0) throw new Error(`examples of unknown operations: ${[...unused].join(', ')}`);

  const errors = errorResponses({ dbReasons, grpcCodes, dbErrorDomain });
  const parameters = hoistParameters(paths);
  return {
    openapi: base.openapi,
    info: base.info,
    servers: base.servers,
    tags: base.tags,
    security: base.security,
    paths: { ...paths, ...base.paths },
    components: {
      ...base.components,
      parameters: { ...parameters, ...base.components.parameters },
      responses: errors.responses,
      schemas: { ...sorted(collector.schemas), ...base.components.schemas, Reason: errors.schema },
    },
    'x-error-codes': errors.codes,
  };
}

const sorted = (record) =>
  Object.fromEntries(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** Parameters that several operations share become components; each path then refers to them. */
function hoistParameters(paths) {
  const uses = new Map();
  for (const { parameters = [] } of Object.values(paths).flatMap((item) => Object.values(item))) {
    parameters.forEach((parameter, at) => {
      if ('$ref' in parameter) return;
      const text = JSON.stringify(parameter);
      uses.set(text, [...(uses.get(text) ?? []), { parameters, at }]);
    });
  }
  const hoisted = {};
  for (const [text, places] of uses) {
    const parameter = JSON.parse(text);
    const name = parameter.name.replace(/(?:^|_)(.)/g, (_, letter) => letter.toUpperCase());
    if (places.length < 2 || name in hoisted) continue;
    hoisted[name] = parameter;
    for (const { parameters, at } of places) {
      parameters[at] = { $ref: `#/components/parameters/${name}` };
    }
  }
  return sorted(hoisted);
}

function operation(method, binding, { collector, dbReasons, model }) {
  const { codes, responses } = reasonsOf(method.name, dbReasons);
  const example = examples[binding.operationId];
  if (example === undefined) throw new Error(`${binding.operationId} has no example`);
  const body = requestBody(method, binding, collector, example);
  const parameters = parametersOf(method, binding, collector, model);
  return {
    operationId: binding.operationId,
    summary: binding.summary,
    ...(method.description ? { description: method.description } : {}),
    tags: [method.group],
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(body ? { requestBody: body } : {}),
    responses: { 200: success(method, collector, example), ...responses },
    'x-min-access': binding.access,
    'x-rpc': method.name,
    'x-codes': codes,
  };
}

/** `body: "*"` takes every field that no binding of the method has in its path. */
function requestBody(method, binding, collector, example) {
  if (binding.body !== '*') return undefined;
  const inPaths = method.bindings.flatMap((one) => one.pathFields);
  const schema = collector.messageSchema(method.input, 'in', inPaths);
  if (Object.keys(schema.properties).length === 0) return undefined;
  const name = `${method.name}Body`;
  collector.schemas[name] = schema;
  return {
    required: schema.required !== undefined,
    content: {
      'application/json': {
        schema: { $ref: `#/components/schemas/${name}` },
        example: example.request ?? {},
      },
    },
  };
}

function parametersOf(method, binding, collector, model) {
  const fields = method.input.fields.filter((field) => !model.ruleOf(field).grpcOnly);
  const inPath = fields.filter((field) => binding.pathFields.includes(field.name));
  const inQuery =
    binding.body === '*' ? [] : fields.filter((field) => !binding.pathFields.includes(field.name));
  const events = method.media.includes('text/event-stream');
  return [
    ...inPath.map((field) => pathParameter(field, collector)),
    ...inQuery.map((field) => queryParameter(field, collector)),
    ...(events ? [{ $ref: '#/components/parameters/LastEventId' }] : []),
  ];
}

function pathParameter(field, collector) {
  const { description, ...schema } = collector.fieldSchema(field, 'in');
  return { name: field.name, in: 'path', required: true, description, schema };
}

function queryParameter(field, collector) {
  const { description, ...schema } = collector.fieldSchema(field, 'in');
  const place = { name: field.name, in: 'query', required: false };
  // A message does not fit a query string, so it travels as JSON.
  if ('$ref' in schema && field.fieldKind === 'message') {
    return {
      ...place,
      description: `${description} As JSON.`,
      content: { 'application/json': { schema } },
    };
  }
  return { ...place, description, schema };
}

function success(method, collector, example) {
  const content = {};
  for (const media of method.media) {
    const entry = mediaTypes[media](method, collector);
    content[media] = { ...entry, example: example.responses?.[media] ?? example.response };
  }
  return { description: textOf(method.output), content };
}

const mediaTypes = {
  'application/json': (method, collector) => ({
    schema: collector.reference(method.output, 'out'),
  }),

  /** One line for each element of the list that JSON would show; the rest is the last line. */
  'application/x-ndjson': (method, collector) => {
    const message = collector.reference(method.output, 'out');
    const error = { $ref: '#/components/schemas/StreamError' };
    const name = `${method.name}Line`;
    if (!method.media.includes('application/json')) {
      collector.schemas[name] = {
        description: 'One line of the answer.',
        anyOf: [message, error],
      };
      return { schema: { $ref: `#/components/schemas/${name}` } };
    }
    const list = method.output.fields.find((field) => field.fieldKind === 'list');
    const element = list.name.replace(/s$/, '');
    collector.schemas[`${method.name}ItemLine`] = {
      type: 'object',
      description: `A line with one ${element}.`,
      properties: { [element]: collector.reference(list.message, 'out') },
      required: [element],
    };
    collector.schemas[`${method.name}LastLine`] = {
      ...collector.messageSchema(method.output, 'out', [list.name]),
      description: `The last line, after all ${list.name}.`,
    };
    const lines = ['ItemLine', 'LastLine'].map((part) => ({
      $ref: `#/components/schemas/${method.name}${part}`,
    }));
    collector.schemas[name] = {
      description: 'One line of the answer.',
      anyOf: [...lines, error],
    };
    return { schema: { $ref: `#/components/schemas/${name}` } };
  },

  'text/event-stream': (method) => ({
    schema: {
      type: 'string',
      description: `Server-sent events: \`id\` is the resume token, \`data\` is one ${method.output.name}, or \`{"error": ...}\` as the last.`,
    },
  }),

  'application/octet-stream': () => ({
    schema: { type: 'string', format: 'binary', description: 'The bytes of a backup file.' },
  }),
};
