import { openApiDocument } from '@millrace/contract/documents';
import {
  operationsOf,
  parameterReader,
  type DocumentSchemas,
  type ParameterReader,
} from '@millrace/kit/http';

/** Checks the fields that are query parameters of the REST API. */
export interface QueryReaders {
  getTask: ParameterReader;
  listTasks: ParameterReader;
}

export function queryReaders(schemas: DocumentSchemas): QueryReaders {
  const operations = operationsOf(openApiDocument('queue'));
  const reader = (id: string): ParameterReader => {
    const operation = operations.find((known) => known.id === id);
    const options = { place: 'query', fillDefaults: true, invalidCode: 'INVALID_QUERY' } as const;
    const found = operation && parameterReader(operation, schemas, options);
    if (!found) throw new Error(`The operation ${id} has no query`);
    return found;
  };
  return { getTask: reader('getTask'), listTasks: reader('listTasks') };
}
