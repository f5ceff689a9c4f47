/** The data the REST bridge and the gRPC server are driven by, as TypeScript. */

export function buildRoutes(model) {
  const routes = model.methods.flatMap((method) =>
    method.bindings.map((binding) => ({
      operationId: binding.operationId,
      rpc: method.name,
      method: binding.verb.toUpperCase(),
      path: binding.path,
      body: binding.body,
      pathFields: binding.pathFields,
      queryFields: queryFields(method, binding, model),
      access: binding.access,
      streaming: method.streaming,
      media: method.media,
    })),
  );
  const methods = Object.fromEntries(
    model.methods.map(({ name, access, streaming }) => [name, { access, streaming }]),
  );
  const grpcOnly = Object.fromEntries(
    model.messages
      .map((message) => [
        message.name,
        message.fields.filter((field) => model.ruleOf(field).grpcOnly).map((field) => field.name),
      ])
      .filter(([, fields]) => fields.length > 0),
  );
  return `
export type DbAccess = 'read' | 'write' | 'admin';
export type DbMethod = keyof typeof dbMethods;

/** One HTTP binding of a method. */
export interface DbRoute {
  readonly operationId: string;
  readonly rpc: DbMethod;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** As in the proto: a field of the request stands in braces and fills one segment or a part of it. */
  readonly path: string;
  /** '*': the JSON body is the request, but for the fields in the path. '': they are in the query. */
  readonly body: '*' | '';
  readonly pathFields: readonly string[];
  readonly queryFields: readonly string[];
  readonly access: DbAccess;
  /** The method is server-streaming on gRPC. */
  readonly streaming: boolean;
  /** Media types of the answer, the default first. */
  readonly media: readonly string[];
}

/** What a key needs for each method, and whether its answer is a stream. */
export const dbMethods = ${JSON.stringify(methods)} as const satisfies Record<string, { readonly access: DbAccess; readonly streaming: boolean }>;

/** Every HTTP binding, in the order of the proto. */
export const dbRoutes: readonly DbRoute[] = ${JSON.stringify(routes)};

/** Fields that travel on gRPC alone, by message: REST neither takes nor shows them. */
export const dbGrpcOnlyFields: Readonly<Record<string, readonly string[]>> = ${JSON.stringify(grpcOnly)};
`;
}

function queryFields(method, binding, model) {
  if (binding.body === '*') return [];
  return method.input.fields
    .filter((field) => !model.ruleOf(field).grpcOnly && !binding.pathFields.includes(field.name))
    .map((field) => field.name);
}
