"""Where the random words come from, and that they do not leave."""

import copy
import pickle
import subprocess
import sys

import pytest

from sfumato.privacy.noise import SecureNoise, SeededNoise, rounded_gaussian


def test_draws_repeat_with_the_seed_and_only_with_it():
    draws = [rounded_gaussian(SeededNoise(seed), 1000, 50).tolist() for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert rounded_gaussian(SecureNoise(), 1000, 50).tolist() != rounded_gaussian(SecureNoise(), 1000, 50).tolist()
    assert SeededNoise.rehearsal and not SecureNoise.rehearsal


@pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy])
def test_seeded_noise_refuses_to_leave_the_process(attempt):
    with pytest.raises(TypeError, match="SeededNoise"):
        attempt(SeededNoise(7))


def test_secure_noise_pickles_to_nothing():
    assert not vars(SecureNoise())
    assert isinstance(pickle.loads(pickle.dumps(SecureNoise())), SecureNoise)


def test_forked_processes_draw_different_words():
    script = """if True:
        import os
        from sfumato.privacy.noise import SecureNoise
        noise = SecureNoise()
        noise.words(1)
        for _ in range(2):
            child = os.fork()
            if child == 0:
                os.write(1, f"{noise.words(1)[0]}\\n".encode())
                os._exit(0)
            os.waitpid(child, 0)
        print(noise.words(1)[0])
    """
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    words = run.stdout.split()
    assert len(words) == 3 and len(set(words)) == 3
