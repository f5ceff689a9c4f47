import type { DaemonSchema } from '@millrace/contract/daemon';
import { useRef, useState } from 'react';
import { useAction } from '../../parts/action.js';
import { useShortcut } from '../../parts/shortcuts.js';
import { sessionActions } from '../../sessions/actions.js';
import { isOver } from '../../sessions/status.js';

type Session = DaemonSchema<'Session'>;

/** Sends a message to the agent. Enter sends, Shift+Enter starts a new line. */
export function SendForm({ session }: { session: Session }) {
  const [text, setText] = useState('');
  const field = useRef<HTMLTextAreaElement>(null);
  const send = useAction({
    run: (message: string) => sessionActions(session.id).send(message),
    done: () => 'Sent.',
    refresh: ['sessions', 'session'],
    onDone: () => setText(''),
  });
  useShortcut('r', 'Reply to the agent', () => field.current?.focus());
  const disabledReason = disabledReasonOf(session);
  if (disabledReason) return <p className="muted send-disabled">{disabledReason}</p>;
  const isReady = text.trim() !== '' && !send.isDisabled;
  return (
    <form
      className="send"
      onSubmit={(event) => {
        event.preventDefault();
        if (isReady) send.mutate(text);
      }}
    >
      <textarea
        ref={field}
        rows={Math.min(text.split('\n').length, 8)}
        aria-label="Message to the agent"
        placeholder={
          session.status === 'waiting_for_input' ? 'Answer the question' : 'Message the agent'
        }
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          if (isReady) send.mutate(text);
        }}
      />
      <button type="submit" className="primary" disabled={!isReady}>
        {send.isPending ? 'Sending' : 'Send'}
      </button>
    </form>
  );
}

function disabledReasonOf({ status, driver }: Session): string | undefined {
  if (isOver(status)) return 'The agent has ended. Restart it to send a message.';
  if (driver === 'headless') return 'A headless agent runs once and takes no input.';
  return undefined;
}
