import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo } from 'react';
import { readDead, type DeadRow, type Filter } from '../../queue/api.js';

const minRows = 60;

/** The dead tasks that match the filter, fetched page by page while scrolling. */
export function useDeadTasks(queue: string, filter: Filter) {
  const client = useQueryClient();
  const { http_status: httpStatus, ...browsed } = filter;
  const query = useInfiniteQuery({
    queryKey: ['dead', queue, browsed],
    queryFn: ({ pageParam }) => readDead(queue, browsed, pageParam),
    initialPageParam: '',
    getNextPageParam: ({ next }) => (next === '' ? undefined : next),
    // A refetch of all pages could cost dozens of requests; the groups show new failures.
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
    refetchOnWindowFocus: false,
  });
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = query;
  const rows = useMemo<readonly DeadRow[]>(() => {
    const all = data?.pages.flatMap(({ tasks }) => tasks) ?? [];
    // The list operation does not filter by HTTP status; redrive and purge do.
    return httpStatus === undefined ? all : all.filter((row) => row.httpStatus === httpStatus);
  }, [data, httpStatus]);
  const fetchMore = useCallback(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
  const needsMore = httpStatus !== undefined && rows.length < minRows;
  useEffect(() => {
    if (needsMore) fetchMore();
  }, [needsMore, fetchMore]);
  const reload = useCallback(
    () => client.resetQueries({ queryKey: ['dead', queue] }),
    [client, queue],
  );
  return { query, rows, fetchMore, reload };
}
