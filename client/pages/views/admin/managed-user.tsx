import type { UsersShowOutput } from 'account-client';
import { type ComponentChildren, Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { date, dateTime, number, size } from '../../in-readers-language.ts';
import { providerLabelFirst } from '../../provider-label.ts';
import { Events } from '../dashboard/activity.tsx';
import { Device } from '../dashboard/devices.tsx';
import { Linked } from '../dashboard/linked-logins.tsx';
import { ActRow } from './act-row.tsx';
import { actsOn } from './acts.ts';
import { AdminPage } from './admin-page.tsx';

/** One user: what is known of the account, and what administrators do about it. */
export function ManagedUser({ id }: { id: string }) {
  const [changes, setChanges] = useState(0);
  return (
    <AdminPage title={({ user }: UsersShowOutput) => user.name} read={() => api.users.show.query({ id })}>
      {(shown, reload) => (
        <>
          <Account user={shown.user} />
          <Acts
            shown={shown}
            onDone={async () => {
              await reload();
              setChanges((count) => count + 1);
            }}
          />
          <Logins shown={shown} />
          <Sessions sessions={shown.sessions} />
          <Uploads uploads={shown.uploads} />
          <Card id="activity" title="Activity">
            <Events key={changes} read={(page) => api.users.activity.query({ id, ...page })} />
          </Card>
        </>
      )}
    </AdminPage>
  );
}

function Card({ id, title, children }: { id: string; title: string; children: ComponentChildren }) {
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <div class="stack">{children}</div>
    </section>
  );
}

/** Facts without a value are left out. */
function Facts({ facts }: { facts: Record<string, string> }) {
  return (
    <dl class="facts">
      {Object.entries(facts).map(
        ([name, value]) =>
          value && (
            <Fragment key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </Fragment>
          ),
      )}
    </dl>
  );
}

function Account({ user }: Pick<UsersShowOutput, 'user'>) {
  const { email, emailVerified, role, blockedAt, deletedAt, provider } = user;
  return (
    <Card id="account" title="Account">
      <Facts
        facts={{
          Email: emailVerified ? email : `${email} (not verified)`,
          Role: role === 'admin' ? 'Administrator' : 'User',
          Blocked: blockedAt === null ? '' : `Since ${dateTime(blockedAt)}`,
          Deleted: deletedAt === null ? '' : `On ${dateTime(deletedAt)}`,
          Created: `${dateTime(user.createdAt)}${provider === 'email' ? '' : `, through ${providerLabelFirst(provider)}`}`,
          Id: user.id,
          Bio: user.bio,
          Location: user.location,
          Website: user.website,
        }}
      />
    </Card>
  );
}

function Acts({ shown, onDone }: { shown: UsersShowOutput; onDone(): Promise<void> }) {
  return (
    <Card id="acts" title="What you can do">
      <p>
        The user sees each in the activity, as done by an administrator. A mail tells of a removed second factor,
        another role, a block and its end, and a deletion.
      </p>
      <ul class="entries">
        {actsOn(shown).map((act) => (
          <ActRow key={act.name} act={act} user={shown.user} onDone={onDone} />
        ))}
      </ul>
    </Card>
  );
}

function Logins({ shown: { hasPassword, hasSecondFactor, passkeys, identities } }: { shown: UsersShowOutput }) {
  return (
    <Card id="logins" title="Ways to log in">
      <Facts
        facts={{
          Password: hasPassword ? 'Yes' : 'None',
          Passkeys: passkeys === 0 ? 'None' : number(passkeys),
          'Second factor': hasSecondFactor ? 'Authenticator app' : 'None',
        }}
      />
      <ul class="entries">
        {identities.map((identity) => (
          <li key={identity.id}>
            <Linked identity={identity} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Sessions({ sessions }: Pick<UsersShowOutput, 'sessions'>) {
  return (
    <Card id="sessions" title="Sessions">
      {sessions.length === 0 && <p>Logged in nowhere.</p>}
      <ul class="entries">
        {sessions.map((session) => (
          <li key={session.id}>
            <Device session={session} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

const purposes = { avatar: 'Avatar', post: 'Image', direct: 'File' };

function Uploads({ uploads: { used, quota, files, newest } }: Pick<UsersShowOutput, 'uploads'>) {
  return (
    <Card id="uploads" title="Uploads">
      <p>
        {files === 1 ? 'One file' : `${number(files)} files`}, {size(used)} of {size(quota)}.
        {files > newest.length && ` The newest ${number(newest.length)}:`}
      </p>
      <ul class="entries">
        {newest.map(({ key, name, url, contentType, purpose, state, createdAt, size: bytes }) => (
          <li key={key}>
            <div>
              <strong>{purposes[purpose]}</strong> –{' '}
              {state === 'pending' ? `${name}, not checked yet` : <a href={url}>{name}</a>}
              <p class="hint">
                {contentType}, {size(bytes)}, {date(createdAt)}
              </p>
            </div>
          </li>
        ))}
      </ul>
    </Card>
  );
}
