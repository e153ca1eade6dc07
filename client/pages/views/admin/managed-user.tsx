import type { UsersShowOutput } from 'account-client';
import { type ComponentChildren, Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { api } from '../../api.ts';
import { labelOf, ownFields, valueText } from '../../form/own-fields.tsx';
import { deviceIcon } from '../../icons/device-icon.ts';
import { Icon } from '../../icons/icon.tsx';
import { ProviderLogo } from '../../icons/provider-logo.tsx';
import { date, dateTime, number, size } from '../../language/format.ts';
import { providerLabelFirst } from '../../language/provider-label.ts';
import { text } from '../../language/texts.ts';
import { Events } from '../dashboard/activity.tsx';
import { Device } from '../dashboard/security/devices.tsx';
import { Linked } from '../dashboard/security/linked-logins.tsx';
import { ActRow } from './act-row.tsx';
import { actsOn } from './acts.ts';
import { AdminPage } from './admin-page.tsx';
import { Standing } from './standing.tsx';

/** One user: the facts about the account, and the actions of administrators. */
export function ManagedUser({ id }: { id: string }) {
  const [changes, setChanges] = useState(0);
  return (
    <AdminPage title={({ user }: UsersShowOutput) => user.name} read={() => api.users.show.query({ id })}>
      {(shown, reload) => (
        <>
          <p class="badges">
            <Standing user={shown.user} />
          </p>
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
          <Card id="activity" title={text('admin.activity.title')}>
            <Events key={changes} day="h3" read={(page) => api.users.activity.query({ id, ...page })} />
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

/** Facts without a value are omitted. */
function Facts({ facts }: { facts: [name: string, value: string][] }) {
  return (
    <dl class="facts">
      {facts.map(
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

/** Fields that users may not read are shown by their names: the page's settings do not tell their labels. */
const ownFacts = (values: UsersShowOutput['user']['fields'] = {}): [name: string, value: string][] =>
  Object.entries(values).map(([name, value]) => {
    const known = ownFields.find((field) => field.name === name);
    return known ? [labelOf(known), valueText(known, value)] : [name, value === null ? '' : String(value)];
  });

function Account({ user }: Pick<UsersShowOutput, 'user'>) {
  const { email, emailVerified, role, blockedAt, deletedAt, provider } = user;
  const created = dateTime(user.createdAt);
  return (
    <Card id="account" title={text('admin.account.title')}>
      <Facts
        facts={[
          [text('common.email'), emailVerified ? email : text('admin.account.emailNotVerified', { email })],
          [
            text('admin.account.role'),
            role === 'admin' ? text('admin.account.administrator') : text('admin.account.user'),
          ],
          [
            text('admin.account.blocked'),
            blockedAt === null ? '' : text('admin.account.blockedSince', { time: dateTime(blockedAt) }),
          ],
          [
            text('admin.account.deleted'),
            deletedAt === null ? '' : text('admin.account.deletedOn', { time: dateTime(deletedAt) }),
          ],
          [
            text('admin.account.created'),
            provider === 'email'
              ? created
              : text('admin.account.createdThrough', { time: created, provider: providerLabelFirst(provider) }),
          ],
          [text('admin.account.id'), user.id],
          [text('admin.account.bio'), user.bio],
          [text('admin.account.location'), user.location],
          [text('admin.account.website'), user.website],
          ...ownFacts(user.fields),
        ]}
      />
    </Card>
  );
}

function Acts({ shown, onDone }: { shown: UsersShowOutput; onDone(): Promise<void> }) {
  return (
    <Card id="acts" title={text('admin.acts.title')}>
      <p>{text('admin.acts.explanation')}</p>
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
    <Card id="logins" title={text('admin.logins.title')}>
      <Facts
        facts={[
          [text('common.password'), text(hasPassword ? 'admin.logins.hasPassword' : 'admin.logins.noPassword')],
          [text('admin.logins.passkeys'), passkeys === 0 ? text('admin.logins.noPasskeys') : number(passkeys)],
          [
            text('admin.logins.secondFactor'),
            text(hasSecondFactor ? 'admin.logins.app' : 'admin.logins.noSecondFactor'),
          ],
        ]}
      />
      <ul class="entries" hidden={identities.length === 0}>
        {identities.map((identity) => (
          <li key={identity.id}>
            <span class="mark">
              <ProviderLogo provider={identity.provider} />
            </span>
            <Linked identity={identity} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Sessions({ sessions }: Pick<UsersShowOutput, 'sessions'>) {
  return (
    <Card id="sessions" title={text('admin.sessions.title')}>
      {sessions.length === 0 && <p>{text('admin.sessions.none')}</p>}
      <ul class="entries">
        {sessions.map((session) => (
          <li key={session.id}>
            <span class="mark">
              <Icon name={deviceIcon(session.device)} />
            </span>
            <Device session={session} />
          </li>
        ))}
      </ul>
    </Card>
  );
}

function Uploads({ uploads: { used, quota, files, newest, quarantined = [] } }: Pick<UsersShowOutput, 'uploads'>) {
  const isNew = new Set(newest.map(({ key }) => key));
  const shown = [...newest, ...quarantined.filter(({ key }) => !isNew.has(key))];
  return (
    <Card id="uploads" title={text('admin.uploads.title')}>
      <p>
        {text('admin.uploads.usage', { count: files, used: size(used), quota: size(quota) })}
        {files > newest.length && ` ${text('admin.uploads.newest', { count: newest.length })}`}
      </p>
      <ul class="entries">
        {shown.map(({ key, name, url, contentType, purpose, state, finding = '', createdAt, size: bytes }) => (
          <li key={key}>
            <div>
              <strong>{text(`admin.uploads.purposes.${purpose}`)}</strong> –{' '}
              {state === 'pending' && text('admin.uploads.pending', { name })}
              {state === 'quarantined' && text('admin.uploads.quarantined', { name, finding })}
              {(state === 'stored' || state === 'replaced') && <a href={url}>{name}</a>}
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
