/** Reads the database's proto into plain objects: methods, HTTP bindings, rules and comments. */
import {
  createFileRegistry,
  fromBinary,
  getOption,
  hasOption,
  ScalarType,
  toBinary,
} from '@bufbuild/protobuf';
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt';
import { getComments } from '@bufbuild/protoplugin';

export { ScalarType };

const packageName = 'millrace.db.v1';
const accessNames = ['none', 'read', 'write', 'admin'];

/**
 * The descriptor set for server reflection: our own comments stay, so that `grpcurl describe`
 * shows them; those of vendored files would only triple its size.
 */
export function reflectionSet(bytes) {
  const set = fromBinary(FileDescriptorSetSchema, bytes);
  for (const file of set.file) {
    if (file.package !== packageName) file.sourceCodeInfo = undefined;
  }
  return toBinary(FileDescriptorSetSchema, set);
}

/** The model of the service in a descriptor set that has source info. */
export function readModel(bytes) {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes));
  const service = registry.getService(`${packageName}.Database`);
  const options = {
    http: registry.getExtension('google.api.http'),
    field: registry.getExtension(`${packageName}.field_rule`),
    method: registry.getExtension(`${packageName}.method_rule`),
  };
  const ours = [...registry].filter((type) => type.file.proto.package === packageName);
  return {
    messages: ours.filter((type) => type.kind === 'message'),
    ruleOf: (field) => (hasOption(field, options.field) ? getOption(field, options.field) : {}),
    methods: service.methods.map((method) => readMethod(method, options)),
  };
}

function readMethod(method, options) {
  if (!hasOption(method, options.http)) throw new Error(`${method.name} has no google.api.http`);
  if (!hasOption(method, options.method)) throw new Error(`${method.name} has no method_rule`);
  const http = getOption(method, options.http);
  const rule = getOption(method, options.method);
  const [summary, ...description] = paragraphs(method);
  const rules = [http, ...http.additionalBindings];
  const operations = rule.operations.length > 0 ? rule.operations : [{}];
  if (operations.length !== rules.length) {
    throw new Error(`${method.name} has ${rules.length} bindings but names ${operations.length}`);
  }
  return {
    name: method.name,
    input: method.input,
    output: method.output,
    streaming: method.methodKind === 'server_streaming',
    group: rule.group,
    access: accessNames[rule.access],
    media: rule.media.length > 0 ? rule.media : ['application/json'],
    description: description.join('\n\n'),
    bindings: rules.map((binding, at) => ({
      operationId: operations[at].id || method.name[0].toLowerCase() + method.name.slice(1),
      summary: operations[at].summary || summary.replace(/\.$/, ''),
      access: accessNames[operations[at].access || rule.access],
      ...readBinding(method, binding),
    })),
  };
}

function readBinding(method, { pattern, body }) {
  const verbs = ['get', 'put', 'post', 'delete', 'patch'];
  if (!verbs.includes(pattern.case)) throw new Error(`${method.name}: unknown verb`);
  if (body !== '' && body !== '*') throw new Error(`${method.name}: body must be "*" or absent`);
  const path = pattern.value;
  const pathFields = [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]);
  for (const name of pathFields) {
    if (!method.input.fields.some((field) => field.name === name)) {
      throw new Error(`${method.name}: ${path} names ${name}, which the request does not have`);
    }
  }
  return { verb: pattern.case, path, body, pathFields };
}

/** The comment above a declaration, one string for each paragraph. */
function paragraphs(desc) {
  const comment = getComments(desc).leading ?? '';
  return comment
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().replace(/\s*\n\s*/g, ' '))
    .filter((paragraph) => paragraph !== '');
}

export const textOf = (desc) => paragraphs(desc).join('\n\n');
