/** What is generated from a hand-written OpenAPI document: types, codes, operations, JSON. */
import openapiTS, { astToString } from 'openapi-typescript';
import { parse } from 'yaml';

const verbs = ['get', 'put', 'post', 'delete', 'patch', 'head', 'options'];

/** The files generated from one document, by name. */
export async function filesOf(name, yaml) {
  const document = parse(yaml);
  return {
    [`${name}.ts`]: await typesOf(yaml),
    [`${name}.codes.ts`]: codesOf(name, document),
    [`${name}.operations.ts`]: operationsOf(name, document),
    [`${name}.openapi.json`]: `${JSON.stringify(document, null, 2)}\n`,
  };
}

/** The types of a document, given as YAML or as an object. */
export async function typesOf(document) {
  // A field with a default may be left out by whoever sends it, so it stays optional.
  return astToString(await openapiTS(document, { defaultNonNullable: false }));
}

function codesOf(name, document) {
  const codes = document['x-error-codes'];
  if (codes === undefined) throw new Error(`${name}.openapi.yaml has no x-error-codes`);
  const table = Object.fromEntries(
    Object.entries(codes).map(([code, { status, title }]) => {
      if (!Number.isInteger(status) || typeof title !== 'string') {
        throw new Error(`${name}.openapi.yaml: x-error-codes.${code} needs a status and a title`);
      }
      return [code, { status, title }];
    }),
  );
  return `
/** The closed list of machine codes, each with its HTTP status and its title. */
export const ${name}Codes = ${JSON.stringify(table)} as const;
export type ${capital(name)}Code = keyof typeof ${name}Codes;
`;
}

function operationsOf(name, document) {
  const table = {};
  for (const [path, item] of Object.entries(document.paths)) {
    for (const verb of verbs.filter((one) => one in item)) {
      const operation = item[verb];
      const id = operation.operationId;
      if (id === undefined) throw new Error(`${name}.openapi.yaml: ${verb} ${path} has no id`);
      if (id in table) throw new Error(`${name}.openapi.yaml: ${id} stands twice`);
      const role = operation['x-min-role'];
      table[id] = {
        method: verb.toUpperCase(),
        path,
        authenticated: (operation.security ?? document.security ?? []).length > 0,
        ...(role === undefined ? {} : { minRole: role }),
        codes: operation['x-codes'] ?? [],
      };
    }
  }
  return `
/** Every operation by its id: where it is served, who may call it, which codes it may answer. */
export const ${name}Operations = ${JSON.stringify(table)} as const;
export type ${capital(name)}OperationId = keyof typeof ${name}Operations;
`;
}

const capital = (word) => word[0].toUpperCase() + word.slice(1);
