import {
  accountPlugin,
  SignedIn,
  SignedOut,
  UserButton,
  useLogIn,
  useSession,
  useSessionStore,
  useUser,
} from 'account-client/vue';
import { createApp, defineComponent, h, shallowRef } from 'vue';

const Page = defineComponent(() => {
  const logIn = useLogIn();
  const user = useUser();
  const { client } = useSessionStore();
  const askForDevices = () => void client.sessions.list.query().catch(() => undefined);
  const session = useSession();
  const account = shallowRef('My account');
  const speakGerman = () => {
    account.value = 'Mein Konto';
  };
  return () => [
    h(UserButton, { labels: { account: account.value } }, () => [
      h('a', { href: '#orders' }, 'Orders'),
      h('button', { type: 'button', onClick: speakGerman }, 'Deutsch'),
    ]),
    h('p', 'Shop'),
    h(SignedIn, () => [
      h('h1', `Welcome, ${user.value?.name}`),
      h('button', { type: 'button', onClick: askForDevices }, 'Devices'),
    ]),
    h(SignedOut, () => [h('h1', 'Welcome'), h('button', { type: 'button', onClick: () => logIn() }, 'Log in')]),
    session.value.error ? h('p', { role: 'alert' }, 'Offline') : undefined,
  ];
});

const url = new URLSearchParams(location.search).get('service') ?? '';
createApp(Page)
  .use(accountPlugin({ url }))
  .mount(document.body.appendChild(document.createElement('main')));
