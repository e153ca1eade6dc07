import type { IdentitiesListOutput } from 'account-client';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { api } from '../../../api.ts';
import { Button } from '../../../form/form.tsx';
import { useAction } from '../../../form/use-action.ts';
import { ProviderLogo } from '../../../icons/provider-logo.tsx';
import { date } from '../../../language/format.ts';
import { providerLabel, providerLabelFirst } from '../../../language/provider-label.ts';
import { text } from '../../../language/texts.ts';
import { rememberProvider } from '../../../session/last-provider.ts';
import { settings } from '../../../settings.ts';
import { Outcome, unlessGone } from '../outcome.tsx';
import { useRecentCredential } from './recent-credential.tsx';
import { Row } from './row.tsx';
import type { RowState } from './use-open-row.ts';

type Identity = IdentitiesListOutput['data'][number];

interface Props {
  row: RowState;
  methods: IdentitiesListOutput;
  /** Resolves once `methods` is reloaded. */
  onChange(): Promise<void>;
}

/** The linked identities, each with a button to unlink it, and buttons to link more. */
export function LinkedLogins({ row, methods: { data: identities }, onChange }: Props) {
  /** `busy` is the id being unlinked, or the name of the provider being linked. */
  const { busy, act, ...outcome } = useAction();
  const heading = useRef<HTMLHeadingElement>(null);
  const { withRecentCredential, question, isAsking } = useRecentCredential();

  const unlink = ({ id, provider }: Identity) =>
    act(id, () =>
      withRecentCredential(
        () => unlessGone(api.identities.unlink.mutate({ id })),
        async () => {
          await onChange();
          // The pressed button is gone.
          heading.current?.focus();
          return text('dashboard.linkedLogins.unlinked', { provider: providerLabelFirst(provider) });
        },
      ),
    );

  const link = (provider: string) =>
    act(provider, () =>
      withRecentCredential(
        () => api.auth.idp.start.query({ provider, link: '1' }),
        (begun) => {
          rememberProvider(provider);
          location.assign(begun.location);
          return undefined;
        },
      ),
    );

  const isLinked = (provider: string) => identities.some((identity) => identity.provider === provider);
  const isNotLinked = (provider: string) => !isLinked(provider);
  const linking = { busy, isAsking, question, onLink: (provider: string) => void link(provider) };

  if (settings.providers.length === 0 && identities.length === 0) return null;
  return (
    <Row
      row={row}
      icon="link"
      title={text('dashboard.linkedLogins.title')}
      state={stateOf(identities)}
      action={text(identities.length > 0 ? 'dashboard.security.manage' : 'dashboard.security.add')}
      heading={heading}
    >
      <Outcome {...outcome} />
      <ul class="entries">
        {identities.map((identity) => (
          <li key={identity.id}>
            <span class="mark">
              <ProviderLogo provider={identity.provider} />
            </span>
            <Linked identity={identity} />
            <Button
              kind="secondary"
              isBusy={busy === identity.id}
              isAsking={isAsking}
              busy={text('dashboard.linkedLogins.unlinking')}
              describedBy={`identity-${identity.id}`}
              onClick={() => void unlink(identity)}
            >
              {text('dashboard.linkedLogins.unlink')}
            </Button>
            {busy === identity.id && question}
          </li>
        ))}
        {settings.providers.filter(isNotLinked).map((provider) => (
          <li key={provider}>
            <span class="mark">
              <ProviderLogo provider={provider} />
            </span>
            <div>
              <strong>{providerLabelFirst(provider)}</strong>
              <p class="hint">{text('dashboard.linkedLogins.notLinked')}</p>
            </div>
            <LinkButton {...linking} provider={provider} label="dashboard.linkedLogins.link" />
          </li>
        ))}
      </ul>
      <div class="ways">
        {settings.providers.filter(isLinked).map((provider) => (
          <LinkButton key={provider} {...linking} provider={provider} label="dashboard.linkedLogins.linkAnother" />
        ))}
      </div>
    </Row>
  );
}

interface LinkProps {
  provider: string;
  label: 'dashboard.linkedLogins.link' | 'dashboard.linkedLogins.linkAnother';
  /** What is being linked or unlinked. */
  busy: string;
  isAsking: boolean;
  question: ComponentChildren;
  onLink(provider: string): void;
}

function LinkButton({ provider, label, busy, isAsking, question, onLink }: LinkProps) {
  return (
    <>
      <Button
        kind="secondary"
        isBusy={busy === provider}
        isAsking={isAsking}
        busy={text('common.oneMoment')}
        onClick={() => onLink(provider)}
      >
        {text(label, { provider: providerLabel(provider) })}
      </Button>
      {busy === provider && question}
    </>
  );
}

export function Linked({ identity: { id, provider, email, createdAt } }: { identity: Identity }) {
  return (
    <div id={`identity-${id}`}>
      <strong>{providerLabelFirst(provider)}</strong>
      {email && ` – ${email}`}
      <p class="hint">{text('dashboard.linkedLogins.linkedOn', { date: date(createdAt) })}</p>
    </div>
  );
}

/** The providers, each once. */
const stateOf = (identities: Identity[]): string => {
  const names = new Set(identities.map(({ provider }) => providerLabelFirst(provider)));
  return names.size > 0 ? [...names].join(', ') : text('dashboard.linkedLogins.none');
};
