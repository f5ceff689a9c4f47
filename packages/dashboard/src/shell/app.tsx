import { QueryClientProvider, type QueryClient } from '@tanstack/react-query';
import { Suspense, useEffect, useState, useSyncExternalStore } from 'react';
import { Route, Router, Switch } from 'wouter';
import { useHashLocation } from 'wouter/use-hash-location';
import { followEvents } from '../api/live.js';
import { tokenStore } from '../api/token.js';
import { Empty, Loading } from '../parts/states.js';
import { Toasts } from '../parts/toast.js';
import { HelpSheet } from './help-sheet.js';
import { Mishap } from './mishap.js';
import { Navigation } from './navigation.js';
import { pages } from './pages.js';
import { TokenPrompt } from './token-prompt.js';

export function App({ client }: { client: QueryClient }) {
  return (
    <QueryClientProvider client={client}>
      <Router hook={useHashLocation}>
        <Shell client={client} />
      </Router>
    </QueryClientProvider>
  );
}

function Shell({ client }: { client: QueryClient }) {
  const needsToken = useSyncExternalStore(tokenStore.subscribe, tokenStore.isWanted);
  const [helps, setHelps] = useState(false);
  useEffect(() => followEvents(client), [client]);
  // What failed for want of a token is read again as soon as there is one.
  useEffect(() => {
    if (!needsToken) void client.invalidateQueries();
  }, [client, needsToken]);
  return (
    <div className="shell">
      <a
        className="skip"
        href="#content"
        onClick={(event) => {
          // The address names the page, so the jump is made by hand.
          event.preventDefault();
          document.getElementById('content')?.focus();
        }}
      >
        Skip to content
      </a>
      <Navigation onHelp={() => setHelps(true)} />
      <main id="content" tabIndex={-1}>
        {needsToken ? <TokenPrompt /> : <Content />}
      </main>
      {helps && <HelpSheet onClose={() => setHelps(false)} />}
      <Toasts />
    </div>
  );
}

function Content() {
  const [location] = useHashLocation();
  return (
    <Mishap key={location}>
      <Suspense fallback={<Loading />}>
        <Switch>
          {pages.map(({ path, Content: Page }) => (
            <Route key={path} path={path}>
              {(params) => <Page params={params as Record<string, string>} />}
            </Route>
          ))}
          <Route>
            <Empty title="There is no such page.">
              <a href="#/">Go to the fleet</a>
            </Empty>
          </Route>
        </Switch>
      </Suspense>
    </Mishap>
  );
}
