import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo } from 'react';
import { readDead, type DeadRow, type Filter } from '../queues/api.js';

const enoughRows = 60;

/** The dead tasks that match, read on as one scrolls. */
export function useDead(queue: string, filter: Filter) {
  const client = useQueryClient();
  const { http_status: httpStatus, ...browsed } = filter;
  const query = useInfiniteQuery({
    queryKey: ['dead', queue, browsed],
    queryFn: ({ pageParam }) => readDead(queue, browsed, pageParam),
    initialPageParam: '',
    getNextPageParam: ({ next }) => (next === '' ? undefined : next),
    // Read again page by page it would cost dozens of requests; the groups tell what is new.
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
    refetchOnWindowFocus: false,
  });
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = query;
  const rows = useMemo<readonly DeadRow[]>(() => {
    const all = data?.pages.flatMap(({ tasks }) => tasks) ?? [];
    // The server browses by everything but this, and acts by this too.
    return httpStatus === undefined ? all : all.filter((row) => row.httpStatus === httpStatus);
  }, [data, httpStatus]);
  const readOn = useCallback(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
  const isShort = httpStatus !== undefined && rows.length < enoughRows;
  useEffect(() => {
    if (isShort) readOn();
  }, [isShort, readOn]);
  const startAgain = useCallback(
    () => client.resetQueries({ queryKey: ['dead', queue] }),
    [client, queue],
  );
  return { query, rows, readOn, startAgain };
}
