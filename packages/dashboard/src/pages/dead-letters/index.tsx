import { DeadBrowser } from './browser.js';
import { DeadOverview } from './overview.js';
import './dead-letters.css';
import '../queues/queues.css';

export default function DeadLettersPage({ params }: { params: Readonly<Record<string, string>> }) {
  const { id } = params;
  return id === undefined ? <DeadOverview /> : <DeadBrowser key={id} queue={id} />;
}
