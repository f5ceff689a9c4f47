import { useState } from 'react';
import { tokenStore } from '../api/token.js';

/**
 * Says how to log in, and takes the daemon's token instead. A token is checked by use: a wrong one
 * brings this page back.
 */
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
      <h1>Log in to this daemon</h1>
      <p>
        Run <code>ctl open</code> on the machine the daemon runs on: it opens this page logged in.
      </p>
      {tokenStore.hasLinkFailed() && (
        <p role="alert" className="field-error">
          The login link was used already or is older than 5 minutes. Run <code>ctl open</code> for
          a new one.
        </p>
      )}
      <p>
        Or paste the token that <code>ctl daemon token show</code> prints there.
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
