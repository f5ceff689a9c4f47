import { useState } from 'react';
import { tokenStore } from '../api/token.js';
import { Check, Field, FormError } from '../parts/controls.js';

/** The login page. A wrong token shows on the next request, which brings this page back. */
export function TokenPrompt() {
  const [value, setValue] = useState('');
  const [remember, setRemember] = useState(false);
  const wasRefused = tokenStore.current() !== undefined;
  return (
    <form
      className="panel token-prompt"
      onSubmit={(event) => {
        event.preventDefault();
        if (value.trim() !== '') tokenStore.set(value.trim(), { remember });
      }}
    >
      <h1>Log in to this daemon</h1>
      <p>
        Run <code>ctl open</code> on the machine of the daemon. It opens this page logged in.
      </p>
      {tokenStore.hasLinkFailed() && (
        <FormError>
          The login link was already used or is older than 5 minutes. Run <code>ctl open</code> for
          a new one.
        </FormError>
      )}
      <p>
        Or paste the token from <code>ctl daemon token show</code>.
      </p>
      <FormError>{wasRefused && 'Wrong token. It may have been rotated.'}</FormError>
      <Field
        label="Token"
        type="password"
        autoComplete="off"
        autoFocus
        spellCheck={false}
        value={value}
        onChange={setValue}
      />
      <Check
        label="Remember on this computer, not only in this tab"
        checked={remember}
        onChange={setRemember}
      />
      <button type="submit" className="primary" disabled={value.trim() === ''}>
        Log in
      </button>
    </form>
  );
}
