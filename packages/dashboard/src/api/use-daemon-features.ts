import { ApiError } from '@millrace/client';
import { queryOptions, useQuery } from '@tanstack/react-query';
import { authorizedFetch } from './client.js';
import {
  allDaemonFeatures,
  daemonFeaturesOf,
  noDaemonFeatures,
  type DaemonFeatures,
} from './daemon-features.js';
import { operationsIn } from './operations.js';

const daemonFeatures = () =>
  queryOptions({
    queryKey: ['daemon-features'],
    queryFn: async (): Promise<DaemonFeatures> => {
      const response = await authorizedFetch('/api/docs/openapi.yaml', { priority: 'low' });
      if (response.ok) return daemonFeaturesOf(operationsIn(await response.text()));
      const { code } = new ApiError(response.status, await response.json().catch(() => undefined));
      // Without `api_docs` there is no document, but the daemon has the version of its dashboard.
      return code === 'FEATURE_DISABLED' ? allDaemonFeatures : noDaemonFeatures;
    },
    // The document changes only with the version of the daemon.
    staleTime: 5 * 60_000,
    refetchInterval: false,
  });

/** What the daemon can do; nothing until that is known. */
export function useDaemonFeatures(): DaemonFeatures {
  return useQuery(daemonFeatures()).data ?? noDaemonFeatures;
}
