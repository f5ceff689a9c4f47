import { Browser } from './browser.js';
import { Collections } from './collections.js';
import './database.css';

export default function DatabasePage({ params }: { params: Readonly<Record<string, string>> }) {
  const { id } = params;
  return id === undefined ? <Collections /> : <Browser key={id} collection={id} />;
}
