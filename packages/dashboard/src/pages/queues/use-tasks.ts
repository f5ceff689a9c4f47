import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo } from 'react';
import { listTasks, type Order, type TaskFilter, type TaskRow } from '../../queue/api.js';

const refetchMs = 3_000;
/** A page may be empty and yet have a cursor: the server bounds how much it scans for one. */
const minRows = 60;
const maxUnaskedPages = 10;

/** The tasks that match the filter, fetched page by page while scrolling. */
export function useTasks(queue: string, filter: TaskFilter, order: Order) {
  const client = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: ['tasks', queue, filter, order],
    queryFn: ({ pageParam }) => listTasks(queue, filter, order, pageParam),
    initialPageParam: '',
    getNextPageParam: ({ next_cursor }) => next_cursor || undefined,
    // A refetch reads all pages again, so only the first one is kept up to date.
    refetchInterval: ({ state: { data } }) => (data?.pages.length === 1 ? refetchMs : false),
    refetchOnWindowFocus: false,
  });
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = query;
  const rows = useMemo<readonly TaskRow[]>(
    () => data?.pages.flatMap(({ tasks }) => tasks) ?? [],
    [data],
  );
  const fetchMore = useCallback(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
  const needsMore = rows.length < minRows && (data?.pages.length ?? 0) < maxUnaskedPages;
  useEffect(() => {
    if (needsMore) fetchMore();
  }, [needsMore, fetchMore]);
  const reload = useCallback(
    () => client.resetQueries({ queryKey: ['tasks', queue] }),
    [client, queue],
  );
  return { query, rows, fetchMore, reload };
}
