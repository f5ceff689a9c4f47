import { flowApiTests } from '../support/flow-api.js';
import { freshStore } from './fresh-store.js';

flowApiTests('PostgreSQL', freshStore);
