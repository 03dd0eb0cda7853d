"""Similarities of trees and of rows, for learners that need nothing else of them."""
