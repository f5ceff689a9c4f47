import { useState } from 'react';
import { tokenStore } from '../api/token.js';

/** Asks for the daemon's token. It is checked by use: a wrong one brings this page back. */
export function TokenPrompt() {
  const [value, setValue] = useState('');
  const [keep, setKeep] = useState(false);
  const wasRefused = tokenStore.current() !== undefined;
  return (
    <form
      className="panel token-prompt"
      onSubmit={(event) => {
        event.preventDefault();
        if (value.trim() !== '') tokenStore.set(value.trim(), { keep });
      }}
    >
      <h1>This daemon asks for a token</h1>
      <p>
        Show it with <code>ctl daemon token show</code> on the machine the daemon runs on, and paste
        it here.
      </p>
      {wasRefused && (
        <p role="alert" className="field-error">
          The daemon does not know that token. It may have been rotated.
        </p>
      )}
      <label className="field">
        Token
        <input
          type="password"
          autoComplete="off"
          autoFocus
          spellCheck={false}
          value={value}
          onChange={(event) => setValue(event.target.value)}
        />
      </label>
      <label className="check">
        <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.target.checked)} />
        Keep it on this computer, not only in this tab
      </label>
      <button type="submit" className="primary" disabled={value.trim() === ''}>
        Go on
      </button>
    </form>
  );
}
