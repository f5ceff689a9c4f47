import { QueueDetail } from './detail.js';
import { QueueList } from './list.js';
import './queues.css';

export default function QueuesPage({ params }: { params: Readonly<Record<string, string>> }) {
  const { id } = params;
  return id === undefined ? <QueueList /> : <QueueDetail key={id} queue={id} />;
}
