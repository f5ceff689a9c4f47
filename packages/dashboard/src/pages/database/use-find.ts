import { useInfiniteQuery, useQueryClient, type InfiniteData } from '@tanstack/react-query';
import { useCallback, useMemo } from 'react';
import { find, type DbRecord, type FindPage } from './api.js';
import type { FindBody } from './query.js';
import type { WatchedChange } from './use-watch.js';

const pageSize = 200;
const maxHits = 1_000;

export interface SubmittedQuery {
  body: FindBody;
  limit: number;
  /** Run counter, so that the same query can run again. */
  run: number;
}

/** The records of a query, fetched page by page while scrolling. */
export function useFind(collection: string, { body, limit, run }: SubmittedQuery) {
  const client = useQueryClient();
  const queryKey = useMemo(
    () => ['db-find', collection, body, limit, run],
    [collection, body, limit, run],
  );
  const query = useInfiniteQuery({
    queryKey,
    queryFn: ({ pageParam: { cursor, got } }) =>
      find(collection, {
        ...body,
        // A search has no further pages.
        limit: Math.min(body.search === undefined ? pageSize : maxHits, limit - got),
        ...(cursor === '' ? { explain: true } : { cursor }),
      }),
    initialPageParam: { cursor: '', got: 0 },
    getNextPageParam: ({ next_cursor: cursor, records }, _pages, { got }) => {
      const total = got + records.length;
      return cursor === '' || total >= limit ? undefined : { cursor, got: total };
    },
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
    refetchOnWindowFocus: false,
    gcTime: 0,
    // The rows stay while those of another order or filter load.
    placeholderData: (before, query) => (query?.queryKey[1] === collection ? before : undefined),
  });
  const { data, hasNextPage, isFetching, isError, fetchNextPage } = query;
  const records = useMemo<readonly DbRecord[]>(
    () => data?.pages.flatMap((page) => page.records) ?? [],
    [data],
  );
  const fetchMore = useCallback(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
  const apply = useCallback(
    (changes: readonly WatchedChange[]) =>
      client.setQueryData<InfiniteData<FindPage>>(queryKey, (before) =>
        before ? { ...before, pages: before.pages.map((page) => applied(page, changes)) } : before,
      ),
    [client, queryKey],
  );
  return { query, records, plan: data?.pages[0]?.plan, fetchMore, apply };
}

/** Applies changes to a page. New records wait for the next run, which sorts them. */
function applied(page: FindPage, changes: readonly WatchedChange[]): FindPage {
  let { records } = page;
  for (const { op, record, left } of changes) {
    const isGone = left || op === 'CHANGE_OP_DELETE' || op === 'CHANGE_OP_EXPIRE';
    records = isGone
      ? records.filter(({ id }) => id !== record.id)
      : records.map((old) => (old.id === record.id && old.rev < record.rev ? record : old));
  }
  return { ...page, records };
}
