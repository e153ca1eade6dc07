import { Accounts } from './0001-accounts.ts';
import { Identities } from './0002-identities.ts';
import { Uploads } from './0003-uploads.ts';
import { ProvenMethods } from './0004-proven-methods.ts';
import { MailRequests } from './0005-mail-requests.ts';
import { Search } from './0006-search.ts';
import { UploadUsages } from './0007-upload-usage.ts';
import { NoUpdateTime } from './0008-no-update-time.ts';

/** In the order in which they run. Listed rather than discovered: nothing is read from disk at start. */
export const migrations = [
  { name: '0001-accounts', class: Accounts },
  { name: '0002-identities', class: Identities },
  { name: '0003-uploads', class: Uploads },
  { name: '0004-proven-methods', class: ProvenMethods },
  { name: '0005-mail-requests', class: MailRequests },
  { name: '0006-search', class: Search },
  { name: '0007-upload-usage', class: UploadUsages },
  { name: '0008-no-update-time', class: NoUpdateTime },
];
