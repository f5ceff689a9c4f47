import { useMutation, useQueryClient, type UseMutationResult } from '@tanstack/react-query';
import { useIsAway } from '../api/servers.js';
import { explain } from './states.js';
import { toast } from './toast.js';

export interface ActionOptions<Input, Result> {
  run: (input: Input) => Promise<Result>;
  /** The message on success; none when undefined. */
  done?: (result: Result, input: Input) => string | undefined;
  /** First parts of the query keys to invalidate. */
  refresh?: readonly string[];
  onDone?: (result: Result) => void;
  /** Returns true when it has handled the error itself. */
  onFailed?: (error: unknown, input: Input) => boolean;
}

export type Action<Input, Result> = UseMutationResult<Result, Error, Input> & {
  /** It runs, or its server is away. */
  isDisabled: boolean;
};

/** A mutation that shows its result as a toast and invalidates the queries it affects. */
export function useAction<Input = void, Result = unknown>({
  run,
  done,
  refresh = [],
  onDone,
  onFailed,
}: ActionOptions<Input, Result>): Action<Input, Result> {
  const client = useQueryClient();
  const isAway = useIsAway();
  const mutation = useMutation({
    mutationFn: run,
    onSuccess: (result, input) => {
      const text = done?.(result, input);
      if (text) toast('good', text);
      onDone?.(result);
    },
    onError: (error, input) => {
      if (onFailed?.(error, input)) return;
      const { title, hint } = explain(error);
      toast('bad', hint ? `${title} ${hint}` : title);
    },
    onSettled: () =>
      Promise.all(refresh.map((key) => client.invalidateQueries({ queryKey: [key] }))),
  });
  return { ...mutation, isDisabled: mutation.isPending || isAway };
}
