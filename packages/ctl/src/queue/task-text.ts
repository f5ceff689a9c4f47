import type { QueueSchema } from '@millrace/contract/queue';

type Task = QueueSchema<'Task'>;

const waits: Readonly<Record<QueueSchema<'WaitingFor'>, string>> = {
  time: 'it is not due yet',
  paused: 'the queue is paused, or its callback URL has left the allowlist',
  concurrency: 'the queue is at its limit of tasks in flight (limits.max_in_flight)',
  rate_limit: 'the queue is at its dispatch rate (limits.dispatch_per_second)',
  circuit_open: 'the handler keeps failing, so the circuit breaker is open',
  group: 'an earlier task of its group is first',
  dispatch: 'it is ready, and runs when its turn comes or a worker claims it',
};

/** `: it is not due yet`, or empty if it does not wait. */
export function waitingText({ status, waiting_for: reason }: Task): string {
  return status === 'PENDING' && reason !== undefined ? `: ${waits[reason]}` : '';
}

/** The last error: `HTTP_5XX 503: The callback answered with HTTP 503: no mill here`. */
export function lastErrorText({ last_error: error, attempts }: Task): string {
  if (!error) return '';
  const attempt = attempts.findLast(({ ended_at: end }) => end === error.at);
  return errorText(error, responseMessage(attempt?.response_snippet ?? null));
}

/** Why an attempt failed. */
export function attemptErrorText(attempt: QueueSchema<'Attempt'>): string {
  const { error_type: type, http_status, message, response_snippet: snippet } = attempt;
  if (type === null) return String(http_status ?? '');
  return errorText(
    { error_type: type, http_status, message: message ?? '' },
    responseMessage(snippet),
  );
}

function errorText(
  { error_type: type, http_status: status, message }: Omit<QueueSchema<'LastError'>, 'at'>,
  words: string,
): string {
  const code = status === null ? type : `${type} ${status}`;
  return [code, message, message.includes(words) ? '' : words].filter(Boolean).join(': ');
}

const maxWords = 300;

/** The message in a handler's response: that of a problem, or a line of plain text. */
export function responseMessage(snippet: string | null): string {
  const text = snippet?.trim() ?? '';
  if (text === '' || text.startsWith('<')) return '';
  const words = /^[{[]/.test(text) ? wordsInJson(text) : text.split('\n')[0]!;
  return words.slice(0, maxWords);
}

/** The response may be truncated and therefore not JSON. */
function wordsInJson(text: string): string {
  for (const member of ['detail', 'message', 'error', 'title']) {
    const found = new RegExp(`"${member}"\\s*:\\s*("(?:[^"\\\\]|\\\\.)*")`).exec(text)?.[1];
    if (found === undefined) continue;
    try {
      return JSON.parse(found) as string;
    } catch {
      // Not a JSON string; another member may have one.
    }
  }
  return '';
}
