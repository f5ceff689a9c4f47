import { queryOptions, useQuery } from '@tanstack/react-query';
import { authorizedFetch } from '../../api/client.js';
import { operationsIn } from '../../api/operations.js';
import { base } from './api.js';

/** What the database server can do, by the OpenAPI document it serves. */
interface DatabaseFeatures {
  schemas: boolean;
  advice: boolean;
  createIndex: boolean;
  dropIndex: boolean;
}

const noFeatures: DatabaseFeatures = {
  schemas: false,
  advice: false,
  createIndex: false,
  dropIndex: false,
};

const databaseFeatures = () =>
  queryOptions({
    queryKey: ['db-features'],
    queryFn: async (): Promise<DatabaseFeatures> => {
      const response = await authorizedFetch(`${base}/openapi.yaml`, { priority: 'low' });
      if (!response.ok) return noFeatures;
      const operations = operationsIn(await response.text());
      return {
        schemas: operations.has('GET /v1/admin/schemas/{}'),
        advice: operations.has('GET /v1/admin/index-advice'),
        createIndex: operations.has('POST /v1/admin/collections/{}/indexes'),
        dropIndex: operations.has('DELETE /v1/admin/collections/{}/indexes/{}'),
      };
    },
    // The document changes only with the version of the server.
    staleTime: 5 * 60_000,
    refetchInterval: false,
  });

/** What the database server can do; nothing until that is known. */
export function useDatabaseFeatures(): DatabaseFeatures {
  return useQuery(databaseFeatures()).data ?? noFeatures;
}
