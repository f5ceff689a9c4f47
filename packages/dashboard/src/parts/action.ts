import { useMutation, useQueryClient, type UseMutationResult } from '@tanstack/react-query';
import { explain } from './states.js';
import { toast } from './toast.js';

interface ActionOptions<Input, Result> {
  run: (input: Input) => Promise<Result>;
  /** What to say when it is done; nothing when undefined. */
  done?: (result: Result, input: Input) => string | undefined;
  /** First parts of the keys of queries to read again. */
  refresh?: readonly string[];
  onDone?: (result: Result) => void;
  /** Answers true when it has dealt with the error itself. */
  onRefused?: (error: unknown, input: Input) => boolean;
}

/** Something that changes the world: says how it went and reads again what it touched. */
export function useAction<Input = void, Result = unknown>({
  run,
  done,
  refresh = [],
  onDone,
  onRefused,
}: ActionOptions<Input, Result>): UseMutationResult<Result, Error, Input> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: run,
    onSuccess: (result, input) => {
      const text = done?.(result, input);
      if (text) toast('good', text);
      onDone?.(result);
    },
    onError: (error, input) => {
      if (onRefused?.(error, input)) return;
      const { title, hint } = explain(error);
      toast('bad', hint ? `${title} ${hint}` : title);
    },
    onSettled: () =>
      Promise.all(refresh.map((key) => client.invalidateQueries({ queryKey: [key] }))),
  });
}
